import type { ActionName } from '../route-table.ts'
import type { ManagementAction } from './action.ts'
import { callAgent, deregisterAgent } from './agents.ts'
import { createChannel, deleteChannel, purgeQueue } from './channels.ts'
import { publishEvent, publishEventStore } from './events.ts'
import { peekQueueMessages, receiveQueueMessages, sendQueueMessage } from './queues.ts'
import { redriveDeadLetters, redriveEditedMessage } from './redrive.ts'
import { cancelRedrive, startRedrive } from './redrives.ts'
import { resendMessage } from './resend.ts'
import { sendCommand, sendQuery } from './requests.ts'
import { callTool } from './tools.ts'
import { pauseWebhook, redeliverWebhook, resumeWebhook, rotateWebhookSecret, testWebhook } from './webhooks.ts'
import { cancelStream, cancelTask } from './work.ts'

/** Every action of `POST /api/actions/{action}`. */
const ACTIONS: readonly ManagementAction[] = [
  createChannel,
  deleteChannel,
  purgeQueue,
  sendQueueMessage,
  receiveQueueMessages,
  peekQueueMessages,
  publishEvent,
  publishEventStore,
  sendCommand,
  sendQuery,
  redriveDeadLetters,
  deregisterAgent,
  pauseWebhook,
  resumeWebhook,
  testWebhook,
  redeliverWebhook,
  rotateWebhookSecret,
  resendMessage,
  redriveEditedMessage,
  startRedrive,
  cancelRedrive,
  cancelTask,
  cancelStream,
  callTool,
  callAgent,
]

const BY_NAME: ReadonlyMap<ActionName, ManagementAction> = new Map(ACTIONS.map((action) => [action.name, action]))

/** Returns the action of a name of `route-table.ts`. */
export function actionOf(name: ActionName): ManagementAction {
  const action = BY_NAME.get(name)
  if (action === undefined) throw new TypeError(`${name} is in route-table.ts, and is no action`)
  return action
}
