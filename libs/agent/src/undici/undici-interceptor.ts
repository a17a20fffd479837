import { Dispatcher1Wrapper, type Dispatcher } from 'undici';
import type { CallEnvironment, FetchGuard } from '../call-plan.js';
import { DispatchCall } from './dispatch-call.js';

export interface InterceptorOptions {
  /** What only Bulwark needs to know of a call. Default: the service is the host name, the operation method and path. */
  readonly guard?: (call: Dispatcher.DispatchOptions) => FetchGuard;
}

/** Node's own fetch brings handlers of an older form. */
const wrapper = Dispatcher1Wrapper as unknown as {
  wrapHandler(handler: Dispatcher.DispatchHandler): Dispatcher.DispatchHandler;
};

/**
 * Guards everything that goes through an undici dispatcher: `new Agent().compose(undiciInterceptor(bulwark))`. A guard's
 * refusal is an answer with status 503 or 504; transport errors reach the caller as they are. Compose it last, so
 * that it is the outermost, and not together with undici's own retry.
 *
 * A final answer is passed on as it comes, and judged at its end: until then its bulkhead slot is held and its attempt's
 * timeout runs. An answer that a retry or a fallback may replace waits at its head, and is judged by that.
 */
export function undiciInterceptor(
  bulwark: { readonly environment: CallEnvironment },
  options: InterceptorOptions = {},
): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (call, handler) => {
    // A tunnel or an upgraded connection is no call that ends with an answer.
    if (call.upgrade || call.origin === undefined || call.method === 'CONNECT') {
      return dispatch(call, handler);
    }
    const { environment } = bulwark;
    const guard = options.guard?.(call) ?? {};
    new DispatchCall({ environment, dispatch, call, guard, caller: wrapper.wrapHandler(handler) }).start();
    return true;
  };
}
