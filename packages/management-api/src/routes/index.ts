import { agentsRoute } from './agents.ts'
import { auditRoute } from './audit.ts'
import { configRoute } from './config.ts'
import { deadLettersRoute, redrivesRoute } from './dead-letters.ts'
import { messageRoute, messagesRoute } from './messages.ts'
import type { ManagementRoute } from './route.ts'
import { snapshotRoute } from './snapshot.ts'
import {
  channelStatisticsRoute,
  clientStatisticsRoute,
  eventsStoreStatisticsRoute,
  queueStatisticsRoute,
} from './statistics.ts'
import { webhooksRoute } from './webhooks.ts'

/** The routes that read. Actions are in `actions/`, the monitor in `monitor/`. */
export const ROUTES: readonly ManagementRoute[] = [
  configRoute,
  snapshotRoute,
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
  redrivesRoute,
]
