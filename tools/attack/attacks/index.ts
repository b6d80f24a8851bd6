import type { Attack } from '../attack.ts'
import { agentLoops } from './agent-loops.ts'
import { agentReplyBombs } from './agent-reply-bombs.ts'
import { channelList } from './channel-list.ts'
import { connections } from './connections.ts'
import { dearBodies } from './dear-bodies.ts'
import { deepAgentReplies } from './deep-agent-replies.ts'
import { denials } from './denials.ts'
import { flood } from './flood.ts'
import { forbiddenBodies } from './forbidden-bodies.ts'
import { globs } from './globs.ts'
import { groupMember } from './group-member.ts'
import { heldValues } from './held-values.ts'
import { hostileEvents } from './hostile-events.ts'
import { hostileFilters } from './hostile-filters.ts'
import { hostileHeaders } from './hostile-headers.ts'
import { hostileNames } from './hostile-names.ts'
import { hugeAnswer, largeAnswers } from './large-answers.ts'
import { largeCards } from './large-cards.ts'
import { largeReads } from './large-reads.ts'
import { leavingSubscribers } from './leaving-subscribers.ts'
import { limitAgents } from './limit-agents.ts'
import { limitBodies } from './limit-bodies.ts'
import { limitChannels } from './limit-channels.ts'
import { limitMemory } from './limit-memory.ts'
import { limitRate } from './limit-rate.ts'
import { limitRequests } from './limit-requests.ts'
import { limitCeStreams, limitMcpStreams, limitMonitors } from './limit-streams.ts'
import { limitUnread } from './limit-unread.ts'
import { limitWaiting } from './limit-waiting.ts'
import { manyAgents } from './many-agents.ts'
import { rebinding } from './rebinding.ts'
import { silentNameServer } from './silent-name-server.ts'
import { slowReaders } from './slow-readers.ts'
import { unfinishedBodies } from './unfinished-bodies.ts'
import { waitingCommands } from './waiting-commands.ts'

export const ATTACKS: readonly Attack[] = [
  deepAgentReplies,
  agentReplyBombs,
  largeAnswers,
  hugeAnswer,
  largeCards,
  largeReads,
  hostileHeaders,
  hostileEvents,
  hostileFilters,
  dearBodies,
  forbiddenBodies,
  hostileNames,
  heldValues,
  unfinishedBodies,
  manyAgents,
  waitingCommands,
  slowReaders,
  groupMember,
  leavingSubscribers,
  globs,
  channelList,
  denials,
  agentLoops,
  rebinding,
  silentNameServer,
  connections,
  flood,
  limitRequests,
  limitRate,
  limitBodies,
  limitMcpStreams,
  limitCeStreams,
  limitMonitors,
  limitUnread,
  limitChannels,
  limitAgents,
  limitWaiting,
  limitMemory,
]
