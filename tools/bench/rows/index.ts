import type { Row } from '../row.ts'
import { a2aNativeSend, a2aNativeStream, a2aSend, a2aStream } from './a2a.ts'
import { durableAgents } from './durable-agents.ts'
import { loopDelay } from './loop-delay.ts'
import { longPoll } from './long-poll.ts'
import { mcpProbes, mcpRevisions } from './mcp.ts'
import { natsHops, natsSend } from './nats.ts'
import { consoleRow as console, monitor } from './operators.ts'
import { peers } from './peers.ts'
import { channelSettings, depthRow as depth, enqueue, receiveAck } from './queues.ts'
import { ceSend, clientSend, messageId, queueSend, toolCallRow as toolCall } from './requests.ts'
import { coldStart, metrics } from './server.ts'
import { fanOut, fanOutSse, idleStreams } from './streams.ts'
import { telemetry } from './telemetry.ts'
import { webhooks } from './webhooks.ts'

/** Every implemented goal of the performance budget, in its order. */
export const ROWS: readonly Row[] = [
  toolCall,
  mcpRevisions,
  mcpProbes,
  queueSend,
  ceSend,
  messageId,
  clientSend,
  enqueue,
  receiveAck,
  channelSettings,
  longPoll,
  depth,
  loopDelay,
  metrics,
  telemetry,
  monitor,
  console,
  a2aSend,
  a2aStream,
  a2aNativeSend,
  a2aNativeStream,
  durableAgents,
  idleStreams,
  fanOut,
  fanOutSse,
  coldStart,
  natsSend,
  natsHops,
  webhooks,
  peers,
]
