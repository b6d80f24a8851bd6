import type { NewWebhookSubscription, WebhookMessageSource, WebhookSubscription } from '@signalbox/broker-core/ports'
import { isWebhookFailure, RUN_SOURCE } from '@signalbox/broker-core/ports'
import type { ConnectionCaller, JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import { NativeError } from '../native/errors.ts'
import type { PushConfig, PushNotes } from './push-config.ts'
import { channelOf, readNotes, secretsOf, signingSecret, subscriptionId } from './push-config.ts'
import { MAX_PER_CALLER, MAX_PER_TASK, PUSH_FORMAT } from './run-source.ts'

/** The subscriptions of webhooks: the port through which the server provides them for push notifications. */
export interface PushSubscriptions {
  /** Serves the subscriptions of a source from now on, until the returned function is called. */
  registerSource(source: WebhookMessageSource): () => void
  /** Checks a subscription as its creation does, without creating it. @throws WebhookFailure */
  check(input: NewWebhookSubscription): Promise<void>
  /** Creates a subscription under an id that the caller has derived. @throws WebhookFailure */
  put(id: string, input: NewWebhookSubscription): Promise<WebhookSubscription>
  /** Returns a subscription; undefined if there is none. */
  find(id: string): Promise<WebhookSubscription | undefined>
  /** Returns the subscriptions to a channel, oldest first. */
  ofChannel(channel: string): readonly WebhookSubscription[]
  /** Ends a subscription of an owner. @throws WebhookFailure */
  delete(id: string, owner: string): Promise<void>
}

/** The time after which a configuration ends whose task does not, in ms. */
const KEEP_MS = 30 * 86_400_000

/** The configurations of push notifications, each of which is a subscription of webhooks. */
export class PushConfigurations {
  readonly #push: PushSubscriptions

  constructor(push: PushSubscriptions) {
    this.#push = push
  }

  /** Checks that a configuration could be created. @throws JsonRpcError */
  async check(agentId: string, taskId: string, config: PushConfig, caller: ConnectionCaller): Promise<void> {
    await refusals(() => this.#push.check(subscriptionOf(agentId, taskId, config, caller)))
  }

  /** Creates a configuration, in place of one with its id. @throws JsonRpcError */
  async put(
    agentId: string,
    taskId: string,
    config: PushConfig,
    caller: ConnectionCaller,
    position: string | undefined,
  ): Promise<WebhookSubscription> {
    const push = this.#push
    const id = subscriptionId(agentId, taskId, config.id ?? taskId)
    const input = { ...subscriptionOf(agentId, taskId, config, caller), position }
    const known = await push.find(id)
    if (known !== undefined) {
      // One that is refused replaces none.
      await push.check(input).catch((error: unknown) => {
        if (!isWebhookFailure(error) || error.code !== 'SUBSCRIPTION_LIMIT') throw refusal(error)
      })
      await this.delete(known)
    }
    return refusals(() => push.put(id, input))
  }

  /** Deletes a configuration that may have ended meanwhile. */
  async delete({ id, owner }: WebhookSubscription): Promise<void> {
    try {
      await this.#push.delete(id, owner)
    } catch (error) {
      if (!isWebhookFailure(error) || error.code !== 'SUBSCRIPTION_UNKNOWN') throw refusal(error)
    }
  }
}

function subscriptionOf(
  agentId: string,
  taskId: string,
  config: PushConfig,
  { account, identity: { clientId } }: ConnectionCaller,
): NewWebhookSubscription {
  const { id: configId = taskId, scheme, url, version } = config
  const secrets = secretsOf(config)
  const notes: PushNotes = { agentId, taskId, configId, version, scheme }
  return {
    owner: clientId,
    account,
    type: RUN_SOURCE,
    channel: channelOf(agentId, taskId),
    endpoint: url,
    format: PUSH_FORMAT,
    secret: signingSecret(secrets),
    notes: JSON.stringify(notes),
    secretNotes: JSON.stringify(secrets),
    expiresMs: Date.now() + KEEP_MS,
  }
}

/** Returns a configuration as callers see it: its secrets are never shown. */
export function shown({ endpoint, notes }: WebhookSubscription): JsonObject {
  const { configId: id, scheme, taskId } = readNotes(notes) ?? {}
  return { taskId, id, url: endpoint, ...(scheme === undefined ? {} : { authentication: { scheme } }) }
}

export const RETRY_SECONDS = 5

async function refusals<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw refusal(error)
  }
}

/** Returns a refusal of webhooks as an error of the gateway; other errors are unchanged. */
function refusal(error: unknown): unknown {
  if (!isWebhookFailure(error)) return error
  const { code, details, message } = error
  switch (code) {
    case 'SUBSCRIPTION_LIMIT': {
      const text =
        details['channel'] === undefined
          ? `the caller has ${MAX_PER_CALLER} push notification configurations, its limit; delete one`
          : `the task has ${MAX_PER_TASK} push notification configurations, its limit; delete one`
      return new NativeError(JSON_RPC_CODES.INTERNAL_ERROR, 'LIMIT_EXCEEDED', text)
    }
    case 'HANDSHAKE_LIMIT': {
      const seconds = details['retryAfterSeconds']
      const retryAfterSeconds = typeof seconds === 'number' ? seconds : RETRY_SECONDS
      return new NativeError(JSON_RPC_CODES.INTERNAL_ERROR, 'LIMIT_EXCEEDED', message, { retryAfterSeconds })
    }
    case 'WEBHOOKS_UNAVAILABLE':
      return new NativeError(JSON_RPC_CODES.INTERNAL_ERROR, 'BROKER_UNAVAILABLE', message, {
        retryAfterSeconds: RETRY_SECONDS,
      })
    default: {
      const text =
        details['member'] === 'secret'
          ? 'the token begins with whsec_, but is no secret of 24 to 64 bytes in base64'
          : message
      return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid params: ${text}`)
    }
  }
}
