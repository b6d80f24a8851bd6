import { randomUUID } from 'node:crypto'

import type { BrokerHandle } from '@signalbox/broker-core'
import type { AgentReply } from '../../requests/agent-reply.ts'
import type { AgentRequestOptions, AgentRequests } from '../../requests/agent-requests.ts'

import { streamChannel } from '../channel/channels.ts'
import { publishStreamCancel } from '../channel/control.ts'
import type { StreamLimits } from '../limits.ts'
import { resolveLimits } from '../limits.ts'
import type { StreamForm } from '../stream-form.ts'
import { gatewayForm } from '../stream-form.ts'
import type { AgentStream } from './agent-stream.ts'
import { ClientStream } from './client-stream.ts'
import { FrameReceiver } from './frame-receiver.ts'

export interface OpenAgentStreamOptions {
  readonly system: BrokerHandle
  readonly requests: AgentRequests
  readonly agentId: string
  /** The JSON-RPC request that the agent gets, byte for byte. */
  readonly body: Uint8Array
  /** Caller, headers, time-out and signal. The stream's id is added. */
  readonly request: Omit<AgentRequestOptions, 'streamId' | 'acceptOnly'>
  readonly limits: StreamLimits
  /** The form of the errors that end the stream. @default that of the gateway's own events */
  readonly form?: StreamForm | undefined
}

/**
 * Opens a stream at an agent. After a 2xx status the agent's node relays the events; any other
 * reply is `refused`, and so is a plain answer that came whole.
 * @throws BrokerError as AgentRequests.request does, and the reason of the request's signal
 */
export async function openAgentStream(
  options: OpenAgentStreamOptions,
): Promise<{ readonly refused: AgentReply } | { readonly stream: AgentStream; readonly opened: AgentReply }> {
  const { system, requests, agentId, body, request } = options
  const streamId = randomUUID()
  const receiver = new FrameReceiver()
  // Subscribed before the request, so that no event is missed.
  const subscription = await system.events.subscribe(streamChannel(streamId), {}, receiver.listener)
  try {
    const reply = await requests.request(agentId, body, { ...request, streamId })
    if (reply.failure === undefined && reply.whole !== true && reply.status >= 200 && reply.status < 300) {
      const form = options.form ?? gatewayForm(streamId)
      const limits = resolveLimits(options.limits)
      return { stream: new ClientStream(system, streamId, limits, receiver, subscription, form), opened: reply }
    }
    await subscription.close()
    return { refused: reply }
  } catch (error) {
    await subscription.close()
    // The agent may have started nevertheless.
    await publishStreamCancel(system, streamId).catch(() => {})
    throw error
  }
}
