interface Place {
  readonly host: string;
  /** 0 = any free one. */
  readonly port: number;
}

/** Problems of flags that name one and the same port; without this the second one would meet "taken by another process". */
export function sharedPorts(places: Readonly<Record<string, Place>>): string[] {
  const all = Object.entries(places);
  return all.flatMap(([flag, place], at) =>
    all
      .slice(at + 1)
      .filter(([, other]) => place.port !== 0 && place.port === other.port && meet(place.host, other.host))
      .map(
        ([other]) => `--${flag} and --${other} name the same port, ${place.port}: give each one of its own`,
      ),
  );
}

function meet(one: string, other: string): boolean {
  return one === other || covers(one, other) || covers(other, one);
}

/** `every` stands for more than one address, `one` among them. */
function covers(every: string, one: string): boolean {
  if (every === '::') return true;
  if (every === '0.0.0.0') return !one.includes(':');
  return every === 'localhost' && (one === '127.0.0.1' || one === '::1');
}
