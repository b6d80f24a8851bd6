import type { AgentName } from './agents/process.ts'
import type { ClientName } from './clients/connect.ts'

/** The codes of all errors that clients see of an agent in the conversations that have errors. */
const ERRORS_OF_10 = {
  'send: refused for its content type': [-32005, -32005],
  'send: a follow-up to a finished task and to no task': [-32004, -32001],
  'stream: a follow-up to no task': [-32001],
  'get: no such task': [-32001],
  'cancel: a finished task and no task': [-32002, -32001],
  'resubscribe: to a finished task and to no task': [-32004, -32001],
  'push: set, get, list, delete': [-32001],
  'push: of no task': [-32001, -32001],
}
const ERRORS_OF_03 = {
  ...ERRORS_OF_10,
  'send: a follow-up to a finished task and to no task': [-32600, -32001],
  'resubscribe: to a finished task and to no task': [-32001],
  'push: set, get, list, delete': [-32603],
}
/** The SDK's agents of A2A 1.0 refuse a stream with JSON, which its client for 0.3 cannot read. */
const HIDDEN = {
  'send: refused for its content type': [-32005, 'hidden'],
  'stream: a follow-up to no task': ['hidden'],
}
const NO_LIST = { 'list: the tasks of a context': [-32601] }

/** The errors of each client with each agent that it can talk to without a gateway. */
export const DIRECT_ERRORS = [
  ['1.0', 'v10', ERRORS_OF_10],
  ['1.0', 'both', ERRORS_OF_10],
  ['legacy', 'both', { ...ERRORS_OF_10, ...NO_LIST }],
  ['legacy', 'v03', { ...ERRORS_OF_03, ...NO_LIST }],
  ['0.3', 'both', { ...ERRORS_OF_10, ...HIDDEN }],
  ['0.3', 'v03', ERRORS_OF_03],
] as const satisfies readonly (readonly [ClientName, AgentName, object])[]
