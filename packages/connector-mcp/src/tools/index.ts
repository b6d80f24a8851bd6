import type { BrokerHandle } from '@signalbox/broker-core'
import type { AgentDirectory } from '@signalbox/broker-core/ports'

import { agentQuery, agentSend } from './agent-requests.ts'
import { agentInfo, agentList } from './agents.ts'
import { inboxTools } from './inboxes.ts'
import { channelInfo, channelList } from './channels.ts'
import { eventsPublish, eventsStorePublish, eventsStoreRead, eventsStoreReadLatest } from './events.ts'
import { queueLease, queuePeek, queueReceive, queueSend, SETTLE_TOOLS } from './queues.ts'
import { commandSend, querySend } from './requests.ts'
import type { Responders } from './responders.ts'
import { responderTools } from './responders.ts'
import type { Tool } from './tool.ts'

const OTHER_TOOLS: readonly Tool[] = [
  eventsPublish,
  eventsStorePublish,
  eventsStoreRead,
  eventsStoreReadLatest,
  commandSend,
  querySend,
  channelList,
  channelInfo,
]

/** The parts of the server that decide which tools there are. */
interface ToolSet {
  /** @default none */
  readonly agents?: AgentDirectory | undefined
  /** @default false */
  readonly leases?: boolean
  /** Adds the tools of responders, at the end. @default none */
  readonly responders?: Responders | undefined
  /** Adds the tools of pull agents, at the end. @default false */
  readonly inboxTools?: boolean
}

/**
 * Returns the tools by name, in the order of the specification: the 11 core tools, and with an agent directory the 4
 * agent tools. With leases, `queue_receive` can lease messages, and the tools that settle them follow the other tools
 * for queues.
 */
export function createTools({
  agents,
  leases = false,
  responders,
  inboxTools: hasInboxTools = false,
}: ToolSet = {}): ReadonlyMap<string, Tool> {
  const queueTools = leases ? [queueSend, queueLease, queuePeek, ...SETTLE_TOOLS] : [queueSend, queueReceive, queuePeek]
  const agentTools = agents ? [agentList(agents), agentInfo(agents), agentSend(agents), agentQuery(agents)] : []
  const answering = responders ? responderTools(responders) : []
  const pulling = hasInboxTools && agents?.inboxes !== undefined ? inboxTools(agents.inboxes) : []
  const tools = [...queueTools, ...OTHER_TOOLS, ...agentTools, ...answering, ...pulling]
  return new Map(tools.map((tool) => [tool.definition.name, tool]))
}

/** The tools as `tools/list` shows them. */
export class ToolList {
  /** The JSON text of each tool. */
  readonly #texts: ReadonlyMap<Tool, string>

  constructor(tools: Iterable<Tool>) {
    this.#texts = new Map([...tools].map((tool) => [tool, JSON.stringify(tool.definition)]))
  }

  /** Returns the tools that the policy allows the caller on at least one channel, as a JSON array. */
  textFor(broker: BrokerHandle): string {
    const shown: string[] = []
    for (const [{ needs }, text] of this.#texts) {
      if (needs.patterns.some((pattern) => broker.mayPermit(needs.action, pattern))) shown.push(text)
    }
    return `[${shown.join(',')}]`
  }
}
