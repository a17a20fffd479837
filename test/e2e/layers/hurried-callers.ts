import type { Ended, RowClient } from './grpc-client.js';

export interface HurriedEnds {
  /** Of 1,000 calls with 1 ms to live, ten at a time. */
  readonly hurried: readonly Ended['code'][];
  /** Of the calls another caller made meanwhile, one after the other: five at least. */
  readonly patient: readonly Ended['code'][];
}

/** One caller is in a great hurry while another is not. */
export async function hurryBesidePatience(
  impatient: RowClient['get'],
  patient: RowClient['get'],
): Promise<HurriedEnds> {
  let hurrying = true;
  const calm = (async () => {
    const codes: Ended['code'][] = [];
    while (hurrying || codes.length < 5) codes.push((await patient('/well?pause=leaf')).code);
    return codes;
  })();
  const hurried: Ended['code'][] = [];
  const hurry = async () => {
    for (let n = 0; n < 100; n += 1) hurried.push((await impatient('/well?hurried&pause=leaf', 1)).code);
  };
  await Promise.all(Array.from({ length: 10 }, hurry)).finally(() => {
    hurrying = false;
  });
  return { hurried, patient: await calm };
}
