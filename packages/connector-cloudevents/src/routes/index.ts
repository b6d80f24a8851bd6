import { queueAck, queueAckAll, queueExtend, queueNack, queueReceive } from './queue.ts'
import { sendCommand, sendQuery, sendResponse } from './requests.ts'
import type { CeRoute } from './route.ts'
import { queueSend, sendEvent, sendEventStore } from './send.ts'
import { subscribeCommands, subscribeEvents, subscribeEventsStore, subscribeQueries } from './subscribe.ts'

/** The routes, in the order of the documentation. */
export const CE_ROUTES: readonly CeRoute[] = [
  sendEvent,
  sendEventStore,
  queueSend,
  sendCommand,
  sendQuery,
  sendResponse,
  queueReceive,
  queueAck,
  queueNack,
  queueExtend,
  queueAckAll,
  subscribeEvents,
  subscribeEventsStore,
  subscribeCommands,
  subscribeQueries,
]
