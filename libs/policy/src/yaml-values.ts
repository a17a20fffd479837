/** Nodes of a parsed YAML document to plain data, with linear checks and bounds of its own. */
import { isAlias, isMap, isScalar, isSeq, type Node, type Pair } from 'yaml';
import { FORBIDDEN_KEYS, MAX_DEPTH } from './plain-copy.js';
import { clip, problem, type Path, type Problem, type ProblemPlace, type ProblemReason } from './problem.js';
import { MAX_DOCUMENT_VALUES } from './source-document.js';

/** Uses of anchors (`*name`) in one document. */
export const MAX_ALIASES = 100;

interface Anchor {
  readonly node: Node;
  /** Values in it, itself included; undefined while it is still being read. */
  size: number | undefined;
}

interface Spot {
  readonly path: Path;
  readonly depth: number;
}

/** Reads one document once. */
export class YamlValues {
  readonly problems: Problem[] = [];
  /** A bound on values or aliases was passed; reading stopped there. */
  tooMany = false;
  private root: Node | undefined;
  private values = 0;
  private aliases = 0;
  private readonly anchors = new Map<string, Anchor>();

  constructor(
    private readonly where: {
      readonly place: ProblemPlace;
      readonly lineAt: (offset: number) => number;
    },
  ) {}

  read(root: Node): unknown {
    this.root = root;
    return this.value(root, { path: [], depth: 1 });
  }

  /** The line of the nearest part of the path that is in the text. */
  lineOf(path: Path): number | undefined {
    let node: unknown = this.root;
    let line = this.lineOfNode(node);
    for (const segment of path) {
      if (isAlias(node)) node = this.anchors.get(node.source)?.node;
      if (isMap(node)) {
        const pair = node.items.find((item) => isScalar(item.key) && item.key.value === segment);
        line = this.lineOfNode(pair?.key) ?? line;
        node = pair?.value;
      } else if (isSeq(node)) {
        node = node.items[Number(segment)];
        line = this.lineOfNode(node) ?? line;
      } else return line;
    }
    return line;
  }

  private value(node: unknown, spot: Spot): unknown {
    if (this.tooMany) return null;
    this.values += 1;
    if (this.values > MAX_DOCUMENT_VALUES) {
      return this.stop(
        node,
        spot,
        `the document holds more than ${MAX_DOCUMENT_VALUES} values, aliases counted each time`,
      );
    }
    // Aliases can nest deeper than the text does.
    if (spot.depth > MAX_DEPTH) return this.stop(node, spot, `nested deeper than ${MAX_DEPTH} levels`);
    if (isAlias(node)) return this.alias(node.source, node, spot);
    const anchor = this.opened(node);
    const before = this.values;
    const value = this.plain(node, spot);
    if (anchor !== undefined) anchor.size = this.values - before + 1;
    return value;
  }

  private plain(node: unknown, spot: Spot): unknown {
    if (isMap(node)) return this.map(node.items, spot);
    if (isSeq(node)) {
      return node.items.map((item, index) =>
        this.value(item, { path: [...spot.path, index], depth: spot.depth + 1 }),
      );
    }
    if (!isScalar(node)) return null;
    if (typeof node.value === 'number' && !Number.isFinite(node.value)) {
      this.refuse(node, spot.path, 'invalid', `${clip(node.source ?? '', 40)} is not a finite number`);
    }
    return node.value;
  }

  private map(pairs: readonly Pair[], spot: Spot): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    const lineOfKey = new Map<string, number>();
    for (const { key, value } of pairs) {
      const name = isScalar(key) ? key.value : undefined;
      if (typeof name !== 'string') {
        this.refuse(key, spot.path, 'invalid', 'a key must be text; write it in quotes');
        continue;
      }
      const path = [...spot.path, name];
      const first = lineOfKey.get(name);
      if (first !== undefined) {
        this.refuse(
          key,
          path,
          'duplicate',
          `the key ${clip(name, 80)} stands in this map already, in line ${first}`,
        );
        continue;
      }
      lineOfKey.set(name, this.lineOfNode(key) ?? 0);
      if (FORBIDDEN_KEYS.has(name)) {
        this.refuse(key, path, 'forbidden', `a key may not be named ${name}`);
      } else if (name === '<<') {
        this.refuse(key, path, 'forbidden', 'merge keys (<<) are not supported; write the fields out');
      } else map[name] = this.value(value, { path, depth: spot.depth + 1 });
      if (this.tooMany) break;
    }
    return map;
  }

  private alias(name: string, node: unknown, spot: Spot): unknown {
    this.aliases += 1;
    const anchor = this.anchors.get(name);
    if (anchor === undefined) {
      this.refuse(
        node,
        spot.path,
        'invalid',
        `there is no anchor &${clip(name, 40)} before *${clip(name, 40)}`,
      );
      return null;
    }
    if (anchor.size === undefined) {
      this.refuse(node, spot.path, 'invalid', `*${clip(name, 40)} stands inside its own anchor`);
      return null;
    }
    if (this.aliases > MAX_ALIASES) {
      return this.stop(
        node,
        spot,
        `the document uses more than ${MAX_ALIASES} aliases, nested ones counted each time`,
      );
    }
    if (this.values + anchor.size > MAX_DOCUMENT_VALUES) {
      return this.stop(
        node,
        spot,
        `the document holds more than ${MAX_DOCUMENT_VALUES} values, aliases counted each time`,
      );
    }
    return this.plain(anchor.node, spot);
  }

  private opened(node: unknown): Anchor | undefined {
    const name = isMap(node) || isSeq(node) || isScalar(node) ? node.anchor : undefined;
    if (name === undefined) return undefined;
    const anchor: Anchor = { node: node as Node, size: undefined };
    this.anchors.set(name, anchor);
    return anchor;
  }

  private stop(node: unknown, spot: Spot, message: string): null {
    this.tooMany = true;
    this.refuse(node, spot.path.slice(0, 4), 'invalid', message);
    return null;
  }

  private refuse(node: unknown, path: Path, reason: ProblemReason, message: string): void {
    const line = this.lineOfNode(node);
    const at = { ...this.where.place, ...(line === undefined ? {} : { line }) };
    this.problems.push(problem(path, reason, { message, at }));
  }

  private lineOfNode(node: unknown): number | undefined {
    if (!isMap(node) && !isSeq(node) && !isScalar(node) && !isAlias(node)) return undefined;
    return node.range ? this.where.lineAt(node.range[0]) : undefined;
  }
}
