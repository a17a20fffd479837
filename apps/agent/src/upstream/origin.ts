/** Where connections go. */
export interface Origin {
  readonly secure: boolean;
  /** A name or an address, the latter without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Names an origin among others. */
export function originKey({ secure, host, port }: Origin): string {
  return `${secure ? 'https' : 'http'}://${host}:${port}`;
}
