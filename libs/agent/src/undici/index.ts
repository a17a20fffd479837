export { undiciInterceptor, type InterceptorOptions } from './undici-interceptor.js';
