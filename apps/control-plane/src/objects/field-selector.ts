import { badRequest } from '../errors/api-error.js';
import type { ApiObject } from './api-object.js';

/** Fields that may be selected, with how to read them. */
const FIELDS: Readonly<Record<string, (object: ApiObject) => string>> = {
  'metadata.name': (object) => object.metadata.name,
  'metadata.namespace': (object) => object.metadata.namespace,
};

/** "metadata.name=x,metadata.namespace!=y". Empty text matches everything; another field is refused by name. */
export function parseFieldSelector(text: string): (object: ApiObject) => boolean {
  const requirements = text
    .split(',')
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const [, name = '', operator, value = ''] = /^\s*([^=!]+?)\s*(==|=|!=)\s*(.*?)\s*$/.exec(part) ?? [];
      const read = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
      if (operator === undefined) throw badRequest(`invalid field selector "${part}"`);
      if (read === undefined) {
        const known = Object.keys(FIELDS).join(', ');
        throw badRequest(`field label not supported: ${name}; supported are ${known}`);
      }
      return (object: ApiObject) => (read(object) === value) === (operator !== '!=');
    });
  return (object) => requirements.every((holds) => holds(object));
}
