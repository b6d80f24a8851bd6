import { agentOperations } from './agents/agent-operations.ts'
import { inboxOperations } from './agents/inbox-operations.ts'
import { auditOperations } from './audit/audit-operations.ts'
import { channelOperations } from './channels/channel-operations.ts'
import { pauseOperations } from './channels/pause-operations.ts'
import { settingsOperations } from './channels/settings-operations.ts'
import { deadLetterOperations } from './dead-letters/dead-letter-operations.ts'
import { eventOperations } from './events/event-operations.ts'
import { historyOperations } from './history/history-operations.ts'
import { mapOperations } from './map/map-operations.ts'
import { messageOperations } from './messages/message-operations.ts'
import { nodeOperations } from './node/node-operations.ts'
import { queueOperations } from './queues/queue-operations.ts'
import { requestOperations } from './requests/request-operations.ts'
import { scheduleOperations } from './schedules/schedule-operations.ts'
import { securityOperations } from './security/security-operations.ts'
import { snapshotOperations } from './statistics/snapshot-operations.ts'
import { statisticsOperations } from './statistics/statistics-operations.ts'
import { toolOperations } from './tools/tool-operations.ts'
import { traceOperations } from './trace/trace-operations.ts'
import { webhookOperations } from './webhooks/webhook-operations.ts'
import { workOperations } from './work/work-operations.ts'
import type { ManagementAction, ManagementRoute, Operation } from './operation.ts'
import type { ActionName, ReadingPath } from './route-table.ts'

/** Every operation. `route-table.ts` has their paths and roles, so that a start does not load them. */
const OPERATIONS: readonly Operation[] = [
  ...agentOperations,
  ...auditOperations,
  ...channelOperations,
  ...deadLetterOperations,
  ...eventOperations,
  ...historyOperations,
  ...inboxOperations,
  ...mapOperations,
  ...messageOperations,
  ...nodeOperations,
  ...pauseOperations,
  ...queueOperations,
  ...requestOperations,
  ...scheduleOperations,
  ...securityOperations,
  ...settingsOperations,
  ...snapshotOperations,
  ...statisticsOperations,
  ...toolOperations,
  ...traceOperations,
  ...webhookOperations,
  ...workOperations,
]

const ROUTES = new Map(OPERATIONS.flatMap((each) => (each.method === 'GET' ? [[each.name, each] as const] : [])))
const ACTIONS = new Map(OPERATIONS.flatMap((each) => (each.method === 'POST' ? [[each.name, each] as const] : [])))

/** Returns the route of a path of `route-table.ts`. */
export function readingRoute(path: ReadingPath): ManagementRoute {
  const route = ROUTES.get(path)
  if (route === undefined) throw new TypeError(`${path} is in route-table.ts, and has no route`)
  return route
}

/** Returns the action of a name of `route-table.ts`. */
export function actionOf(name: ActionName): ManagementAction {
  const action = ACTIONS.get(name)
  if (action === undefined) throw new TypeError(`${name} is in route-table.ts, and is no action`)
  return action
}
