/** Shares are counted in whole parts of this, so that 10 % is exactly every tenth call for ever. */
const SCALE = 1_000_000;

/** Golden ratio: rotations by its multiples stay evenly spread. */
const ROTATION = 0.618_033_988_749_894_9;

/**
 * Admits exactly a share of the calls offered, by error diffusion: each call adds the share, every whole admits one.
 * A call that was admitted and then never made gives its whole back.
 */
export class ShareAdmission {
  private readonly share: number;
  private sum: number;

  /** `share` and `phase` in 0..1; the phase is where this agent's sum begins. */
  constructor(share: number, phase: number) {
    this.share = Math.round(Math.min(1, Math.max(0, share)) * SCALE);
    this.sum = Math.floor(phase * SCALE) % SCALE;
  }

  offer(): boolean {
    this.sum += this.share;
    if (this.sum < SCALE) return false;
    this.sum -= SCALE;
    return true;
  }

  /** At most one whole is kept, so that many given back at once make no burst later. */
  giveBack(): void {
    this.sum = Math.min(this.sum + SCALE, 2 * SCALE - 1);
  }
}

/**
 * Where an agent begins, in [0, 1): its slot's bits reversed (slots 0, 1, 2, 3 lie at 0, ½, ¼, ¾, so that any first n
 * of them are evenly spread), rotated by the epoch so that no agent is always the first to be let in.
 * Evenly spread, because random phases miss a share by more than two points one time in four.
 */
export function phaseOf(slot: number, epoch: number): number {
  let bits = slot >>> 0;
  let reversed = 0;
  for (let index = 0; index < 32; index += 1) {
    reversed = reversed * 2 + (bits & 1);
    bits >>>= 1;
  }
  return (reversed / 2 ** 32 + ((epoch * ROTATION) % 1)) % 1;
}
