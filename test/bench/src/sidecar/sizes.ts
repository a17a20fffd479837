/** Bytes of the answers' bodies, by path. */
export const SIZES = { '/100B': 100, '/2KB': 2_048, '/1MB': 1_048_576 } as const;

export type Path = keyof typeof SIZES;
