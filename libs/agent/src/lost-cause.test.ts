import { status as Status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { lostCause } from './lost-cause.js';

describe('why the control plane is away', () => {
  it('is one short cause, whatever gRPC nests it in', () => {
    const unavailable = (details: string) => lostCause({ code: Status.UNAVAILABLE, details });
    expect(
      unavailable(
        'No connection established. Last error: Error: connect ECONNREFUSED 127.0.0.1:9444. Resolution note: ',
      ),
    ).toBe('connection refused');
    expect(
      unavailable(
        'Name resolution failed for target dns:nowhere:9444. Resolution note: getaddrinfo ENOTFOUND nowhere',
      ),
    ).toBe('the name is not known');
    expect(unavailable('No connection established. Last error: Error: odd thing. Resolution note: ')).toBe(
      'odd thing',
    );
    expect(unavailable('No connection established. Last error: null. Resolution note: ')).toBe(
      'not available',
    );
    expect(unavailable('Protocol error')).toBe('what answers speaks no gRPC; is this the gRPC port?');
    expect(unavailable('Connection dropped')).toBe('Connection dropped');
  });

  it('keeps the status that is not plainly "away"', () => {
    expect(lostCause({ code: Status.INTERNAL, details: 'broken' })).toBe('INTERNAL: broken');
    expect(lostCause({ code: Status.CANCELLED, details: '' })).toBe('CANCELLED');
  });
});
