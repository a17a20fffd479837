/** No data; zero is written as zero. */
export const NO_DATA = '-';
/** What is there is not of the form that this version knows. */
export const UNREADABLE = '<unknown>';
/** A list or map that is empty. */
export const EMPTY = '<none>';

/** 0..1 as "0.0%", "38.2%"; something that is not zero is never written as zero. */
export function percentText(ratio: number | undefined): string {
  if (ratio === undefined || !Number.isFinite(ratio)) return NO_DATA;
  const percent = ratio * 100;
  if (percent > 0 && percent < 0.05) return '<0.1%';
  if (percent < 100 && percent >= 99.95) return '>99.9%';
  return `${percent.toFixed(1)}%`;
}

/** A rate: "0", "0.5", "412.0", "2.1k", "3.4M". */
export function rateText(perSecond: number | undefined): string {
  if (perSecond === undefined || !Number.isFinite(perSecond)) return NO_DATA;
  if (perSecond === 0) return '0';
  if (perSecond < 0.05) return '<0.1';
  if (perSecond < 999.95) return perSecond.toFixed(1);
  if (perSecond < 999_950) return `${(perSecond / 1_000).toFixed(1)}k`;
  return `${(perSecond / 1_000_000).toFixed(1)}M`;
}
