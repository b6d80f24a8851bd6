import type { AgentDirectory } from '../agent-directory.ts'
import { agentInfo, agentList } from './agents.ts'
import { agentQuery, agentSend } from './agent-requests.ts'
import { channelInfo, channelList } from './channels.ts'
import { eventsPublish, eventsStorePublish } from './events-publish.ts'
import { eventsStoreRead, eventsStoreReadLatest } from './events-store-read.ts'
import { queuePeek } from './queue-peek.ts'
import { queueReceive } from './queue-receive.ts'
import { queueSend } from './queue-send.ts'
import { commandSend, querySend } from './requests.ts'
import type { Tool } from './tool.ts'

const CORE_TOOLS: readonly Tool[] = [
  queueSend,
  queueReceive,
  queuePeek,
  eventsPublish,
  eventsStorePublish,
  eventsStoreRead,
  eventsStoreReadLatest,
  commandSend,
  querySend,
  channelList,
  channelInfo,
]

/**
 * Returns the tools by name, in the order of the specification: the 11 core tools, and with an agent directory the 4
 * agent tools.
 */
export function createTools({ agents }: { readonly agents?: AgentDirectory | undefined } = {}): ReadonlyMap<
  string,
  Tool
> {
  const agentTools = agents ? [agentList(agents), agentInfo(agents), agentSend(agents), agentQuery(agents)] : []
  return new Map([...CORE_TOOLS, ...agentTools].map((tool) => [tool.definition.name, tool]))
}
