export { AuthenticationError, authenticationFailed, JsonRpcError } from './errors.ts'
export type { JsonRpcErrorOptions } from './errors.ts'
export { JSON_RPC_CODES } from './json-rpc/codes.ts'
export type { JsonRpcCode } from './json-rpc/codes.ts'
