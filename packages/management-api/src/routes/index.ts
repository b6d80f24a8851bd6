import { agentCardRoute } from './agent-card.ts'
import { agentsRoute } from './agents.ts'
import { auditRoute } from './audit.ts'
import { channelsRoute } from './channels.ts'
import { configRoute } from './config.ts'
import { deadLetterQueuesRoute, deadLettersRoute, redrivesRoute } from './dead-letters.ts'
import { historyRoute } from './history.ts'
import { messageRoute, messagesRoute } from './messages.ts'
import { nodesRoute } from './nodes.ts'
import { operatorRoute } from './operator.ts'
import { policyTestRoute } from './policy-test.ts'
import { requestsRoute } from './requests.ts'
import type { ReadingPath } from '../route-table.ts'
import type { ManagementRoute } from './route.ts'
import { routingRoute } from './routing.ts'
import { securityRoute } from './security.ts'
import { settingsRoute } from './settings.ts'
import { snapshotRoute } from './snapshot.ts'
import {
  channelStatisticsRoute,
  clientStatisticsRoute,
  eventsStoreStatisticsRoute,
  queueStatisticsRoute,
} from './statistics.ts'
import { subscribersRoute } from './subscribers.ts'
import { toolsRoute } from './tools.ts'
import { traceRoute } from './trace.ts'
import { webhooksRoute } from './webhooks.ts'
import { streamsRoute, tasksRoute } from './work.ts'

/** The routes that read. Actions are in `actions/`, the monitor in `monitor/`. */
const ROUTES: readonly ManagementRoute[] = [
  configRoute,
  snapshotRoute,
  nodesRoute,
  channelStatisticsRoute,
  queueStatisticsRoute,
  eventsStoreStatisticsRoute,
  clientStatisticsRoute,
  agentsRoute,
  auditRoute,
  webhooksRoute,
  messagesRoute,
  messageRoute,
  deadLettersRoute,
  deadLetterQueuesRoute,
  redrivesRoute,
  requestsRoute,
  tasksRoute,
  streamsRoute,
  toolsRoute,
  traceRoute,
  historyRoute,
  channelsRoute,
  subscribersRoute,
  securityRoute,
  policyTestRoute,
  settingsRoute,
  agentCardRoute,
  routingRoute,
  operatorRoute,
]

const BY_PATH: ReadonlyMap<ReadingPath, ManagementRoute> = new Map(ROUTES.map((route) => [route.path, route]))

/** Returns the route of a path of `route-table.ts`. */
export function readingRoute(path: ReadingPath): ManagementRoute {
  const route = BY_PATH.get(path)
  if (route === undefined) throw new TypeError(`${path} is in route-table.ts, and has no route`)
  return route
}
