import type { Attack } from '../attack/scene.ts'
import * as agents from './agents.ts'
import * as bodies from './bodies.ts'
import * as inputs from './inputs.ts'
import * as limits from './limits.ts'
import * as readers from './readers.ts'
import * as schemas from './schemas.ts'

/** Every attack, in the order of a run. */
export const ATTACKS: readonly Attack[] = [
  agents.deepAgentReplies,
  agents.agentReplyBombs,
  agents.agentChunks,
  readers.largeAnswers,
  readers.hugeAnswer,
  agents.largeCards,
  readers.largeReads,
  inputs.hostileHeaders,
  inputs.hostileEvents,
  inputs.hostileFilters,
  bodies.dearBodies,
  bodies.forbiddenBodies,
  inputs.hostileNames,
  inputs.confusableNames,
  bodies.heldValues,
  schemas.hostileSchemas,
  bodies.unfinishedBodies,
  agents.manyAgents,
  bodies.waitingCommands,
  readers.slowReaders,
  readers.groupMember,
  readers.leavingSubscribers,
  readers.globs,
  readers.channelList,
  limits.denials,
  agents.agentLoops,
  inputs.rebinding,
  agents.silentNameServer,
  limits.connections,
  limits.flood,
  limits.requestsAhead,
  limits.smallChunks,
  limits.limitRequests,
  limits.limitRate,
  bodies.limitBodies,
  limits.limitMcpStreams,
  limits.limitCeStreams,
  limits.limitMonitors,
  limits.limitUnread,
  limits.limitChannels,
  limits.limitAgents,
  limits.limitWaiting,
  limits.limitMemory,
]
