import { Buffer } from 'node:buffer'
import { randomBytes, randomUUID } from 'node:crypto'

import type { BrokerHandle } from '@signalbox/broker-core'
import { encodeText, isBrokerError } from '@signalbox/broker-core'
import { retry } from '@signalbox/broker-core/internal'
import type {
  CreatedWebhookSubscription,
  NewWebhookSubscription,
  WebhookMessageSource,
  WebhookState,
  WebhookSubscription,
  WebhookType,
  WebhookSubscriptions,
} from '@signalbox/broker-core/ports'
import { RUN_SOURCE } from '@signalbox/broker-core/ports'
import { SecretBox } from '@signalbox/http-kit/internal'

import type { TestResult } from './delivery/attempt.ts'
import { notesPlace, sendTest } from './delivery/attempt.ts'
import { classOf, EndpointClient } from './delivery/endpoint-client.ts'
import { Serving } from './delivery/serving.ts'
import { invalidMember, unknownSubscription, WebhookError } from './errors.ts'
import type { EndpointAnswer, WebhookFormat } from '@signalbox/broker-core/ports'
import type { WebhookOptions } from './options.ts'
import { checkWebhookOptions } from './options.ts'
import { EndpointPolicy } from './safety/endpoint-policy.ts'
import { FailedHandshakes } from './safety/handshakes.ts'
import { randomSecret, secretText, signedHeaders, signingKey } from './signature.ts'
import { firstSequence } from './sources/sources.ts'
import type { KnownSubscription } from './subscription/stored-subscriptions.ts'
import { StoredSubscriptions, SubscriptionIndex, viewOf } from './subscription/stored-subscriptions.ts'
import type { CursorRecord, SubscriptionRecord } from './subscription/subscription-record.ts'
import { checkNewSubscription } from './subscription/subscription-record.ts'
import { WebhookLog } from './subscription/webhook-log.ts'

/** The place of the entry by which a node checks its key. */
const KEY_CHECK = 'key'

/**
 * Opens the webhooks of a broker. Resolves when the subscriptions were read. If several nodes share the store, waits
 * until it is available.
 * @param system The handle for reserved channels
 * @throws TypeError, RangeError for an option that is not allowed; Error for a key that the stored secrets were not sealed with; BrokerError ENGINE_UNAVAILABLE
 */
export async function openWebhooks(system: BrokerHandle, options: WebhookOptions): Promise<Webhooks> {
  checkWebhookOptions(options)
  const log = new WebhookLog(system)
  const box = new SecretBox(options.key)
  const mayRetry = (error: unknown): boolean => {
    const waits = options.shared === true && isBrokerError(error, 'ENGINE_UNAVAILABLE')
    if (waits) options.hooks?.failed?.(error)
    return waits
  }
  await retry(() => checkKey(log, box), { mayRetry })
  const webhooks = new Webhooks(system, log, box, options)
  await webhooks.open()
  return webhooks
}

/** A node with another key would disable every subscription that it takes over. */
async function checkKey(log: WebhookLog, box: SecretBox): Promise<void> {
  const entry = await log.ensure(KEY_CHECK, () => ({ sealed: box.seal(encodeText(KEY_CHECK), KEY_CHECK) }))
  const value = entry?.value
  const sealed: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'sealed') : undefined
  if (typeof sealed === 'string' && box.open(sealed, KEY_CHECK) !== undefined) return
  throw new Error('the stored secrets of webhooks were sealed with another key; use the key file of all nodes')
}

/** The attempts to create or renew a subscription, while other requests do it too. */
const PUT_ATTEMPTS = 5

/** The time for which the secret before a rotation still signs, in ms. */
const ROTATION_MS = 86_400_000

/** The state of this node, for metrics. */
export interface WebhookStats {
  /** The subscriptions of all nodes, by state. */
  readonly subscriptions: Readonly<Record<WebhookState, number>>
  /** The subscriptions that this node serves. */
  readonly served: number
  /** The age of the oldest message that this node has not delivered, in ms; 0 without one. */
  readonly oldestMs: number
}

/** The subscriptions of all nodes, as one node manages and serves them. */
export class Webhooks implements WebhookSubscriptions, AsyncDisposable {
  readonly #system: BrokerHandle
  readonly #box: SecretBox
  readonly #options: WebhookOptions
  readonly #policy: EndpointPolicy
  readonly #client: EndpointClient
  readonly #handshakes: FailedHandshakes
  readonly #formats = new Map<string, WebhookFormat>()
  readonly #index = new SubscriptionIndex()
  readonly #sources = new Map<string, WebhookMessageSource>()
  /** The subscriptions that are being created. */
  readonly #creating: NewWebhookSubscription[] = []
  readonly #serving: Serving
  readonly #stored: StoredSubscriptions
  #closed: Promise<void> | undefined

  /** Use `openWebhooks`. */
  constructor(system: BrokerHandle, log: WebhookLog, box: SecretBox, options: WebhookOptions) {
    this.#system = system
    this.#box = box
    this.#options = options
    this.#policy = options.endpointPolicy ?? new EndpointPolicy()
    this.#client = new EndpointClient(this.#policy)
    this.#handshakes = new FailedHandshakes(options.maxFailedHandshakes ?? 30)
    for (const format of options.formats ?? []) this.register(format)
    this.#serving = new Serving(this.#index, {
      system,
      log,
      box,
      client: this.#client,
      node: randomUUID(),
      options,
      formatOf: (name) => this.#formats.get(name),
      sourceOf: (type) => this.#sources.get(type),
      disable: (known, reason) => this.#disable(known, reason),
      remove: (id) => this.#stored.remove(id),
    })
    this.#stored = new StoredSubscriptions(log, this.#index, (entry) => this.#serving.apply(entry))
  }

  /** Adds a format of deliveries. */
  register(format: WebhookFormat): void {
    this.#formats.set(format.name, format)
  }

  /**
   * Adds a connector's source and its format. Its subscriptions are served from now on, until the returned function is called: by no
   * node that has no such source.
   */
  registerSource(source: WebhookMessageSource): () => void {
    this.register(source.format)
    this.#sources.set(source.type, source)
    this.#serving.sourcesChanged()
    return () => {
      this.#sources.delete(source.type)
      this.#serving.sourcesChanged()
    }
  }

  /**
   * Checks the members of a subscription, its limits, and the address of its endpoint, as its creation does.
   * @throws WebhookError
   */
  async check(input: NewWebhookSubscription): Promise<void> {
    const { account = input.owner, endpoint } = input
    this.#assertReady()
    checkNewSubscription(input)
    this.#assertRoomFor(input)
    await this.#handshakes.run(account, endpoint, () => this.#policy.check(endpoint, account))
  }

  /** Starts to read and to serve the subscriptions. Resolves when all were read. */
  open(): Promise<void> {
    return this.#serving.open()
  }

  /**
   * Creates a subscription after the endpoint has agreed to it. The caller must have checked that the owner may subscribe
   * to the channel. Resolves when it is durable.
   * @throws WebhookError; BrokerError ENGINE_UNAVAILABLE
   */
  create(input: NewWebhookSubscription): Promise<CreatedWebhookSubscription> {
    return this.#create(randomBytes(16).toString('base64url'), input, 0)
  }

  /**
   * Creates the subscription with an id that the caller has derived from its parts, or renews it: sets its end and its
   * secret, and delivers again if it was disabled. The position of a known subscription stays, and its last secret signs
   * for a day more. Resolves when it is durable.
   * @throws WebhookError; BrokerError ENGINE_UNAVAILABLE
   */
  async put(id: string, input: NewWebhookSubscription): Promise<WebhookSubscription> {
    this.#assertReady()
    for (let attempt = 1; ; attempt++) {
      // Read before the record: a record that another request writes after that is a conflict.
      const last = await this.#stored.lastSequence(id)
      await this.#stored.refresh(id)
      const known = this.#index.get(id)
      if (known !== undefined) return this.#renew(known, input)
      try {
        return (await this.#create(id, input, last)).subscription
      } catch (error) {
        if (!isBrokerError(error, 'CONFLICT') || attempt === PUT_ATTEMPTS) throw error
      }
    }
  }

  async #renew(
    { id, record: { owner } }: KnownSubscription,
    input: NewWebhookSubscription,
  ): Promise<WebhookSubscription> {
    if (owner !== input.owner) throw unknownSubscription(id)
    const secret = checkNewSubscription(input)
    const { account = owner, endpoint } = input
    await this.#handshakes.run(account, endpoint, () => this.#policy.check(endpoint, account))
    return this.#change(id, (record) => {
      const [last] = record.secrets
      const opened = last && this.#box.open(last.sealed, id)
      const same = opened !== undefined && Buffer.from(opened).equals(secret)
      return {
        ...record,
        state: record.state === 'disabled' ? 'active' : record.state,
        secrets: same ? record.secrets : withNewest(record, this.#box.seal(secret, id)),
        expiresMs: input.expiresMs,
        reason: undefined,
      }
    })
  }

  /** @param last The sequence of the last entry of the record; 0 if there is none */
  async #create(id: string, input: NewWebhookSubscription, last: number): Promise<CreatedWebhookSubscription> {
    const { owner, account = owner, type, channel, filter, expiresMs, notes, position, secretNotes } = input
    const ordered = type === RUN_SOURCE || (input.ordered ?? type === 'events_store')
    this.#assertReady()
    const secret = checkNewSubscription(input)
    const format = this.#formats.get(input.format)
    if (format === undefined) throw invalidMember('format', `is ${input.format}; the server does not have it`)
    this.#assertRoomFor(input)
    this.#creating.push(input)
    try {
      const { url, ratePerMinute } = await this.#handshakes.run(account, input.endpoint, async () => {
        const checked = await this.#policy.check(input.endpoint, account)
        const verified = await format.verify({
          ask: (request) => this.#ask(checked, request),
          origin: this.#options.origin ?? 'localhost',
          subscription: id,
          sign: (messageId, body) => signedHeaders([signingKey(secret)], messageId, Date.now(), body),
        })
        return { url: checked, ...verified }
      })
      const next = type === 'events_store' ? await firstSequence(this.#system, channel, input.start ?? 'new') : 1
      const record: SubscriptionRecord = {
        owner,
        account,
        type,
        channel,
        endpoint: url.href,
        format: format.name,
        filter,
        notes,
        sealedNotes: secretNotes && this.#box.seal(encodeText(secretNotes), notesPlace(id)),
        ordered,
        secrets: [{ sealed: this.#box.seal(secret, id) }],
        state: 'active',
        createdMs: Date.now(),
        expiresMs,
        ratePerMinute,
      }
      const cursor: CursorRecord = { node: this.#serving.node, generation: 0, next, done: [], position }
      const known = await this.#stored.add(id, record, cursor, last)
      return { subscription: viewOf(known), secret: input.secret === undefined ? secretText(secret) : undefined }
    } finally {
      this.#creating.splice(this.#creating.indexOf(input), 1)
    }
  }

  /** Returns the subscriptions, oldest first; of one owner, or of all. */
  list(owner?: string): readonly WebhookSubscription[] {
    const all = [...this.#index.all()].filter(({ record }) => owner === undefined || record.owner === owner)
    return all.map(viewOf).toSorted((a, b) => a.createdMs - b.createdMs || (a.id < b.id ? -1 : 1))
  }

  /** Returns the subscriptions of all owners to a channel, oldest first. */
  ofChannel(type: WebhookType, channel: string): readonly WebhookSubscription[] {
    return this.list().filter((one) => one.type === type && one.channel === channel)
  }

  /** Returns a subscription. @throws WebhookError SUBSCRIPTION_UNKNOWN */
  async get(id: string, owner?: string): Promise<WebhookSubscription> {
    return viewOf(await this.#stored.find(id, owner))
  }

  /** Ends a subscription. Its dead-letter queue stays. @throws WebhookError SUBSCRIPTION_UNKNOWN */
  async delete(id: string, owner?: string): Promise<WebhookSubscription> {
    const known = await this.#stored.find(id, owner)
    await this.#stored.remove(id)
    return viewOf(known)
  }

  /** Stops the deliveries of a subscription until it is resumed. @throws WebhookError SUBSCRIPTION_UNKNOWN */
  pause(id: string): Promise<WebhookSubscription> {
    return this.#change(id, ({ reason: _reason, ...record }) => ({ ...record, state: 'paused' }))
  }

  /** Continues the deliveries of a paused or disabled subscription. @throws WebhookError SUBSCRIPTION_UNKNOWN */
  resume(id: string): Promise<WebhookSubscription> {
    return this.#change(id, ({ reason: _reason, ...record }) => ({ ...record, state: 'active' }))
  }

  /**
   * Replaces the secret of a subscription by a generated one, and returns it. For a day, deliveries have signatures of
   * both.
   * @throws WebhookError SUBSCRIPTION_UNKNOWN
   */
  async rotateSecret(id: string, owner?: string): Promise<string> {
    await this.#stored.find(id, owner)
    const secret = randomSecret()
    const sealed = this.#box.seal(secret, id)
    await this.#stored.change(id, (record) => ({ ...record, secrets: withNewest(record, sealed) }))
    return secretText(secret)
  }

  /**
   * Delivers the entries of an events store from a sequence on, again or for the first time.
   * @throws WebhookError SUBSCRIPTION_UNKNOWN, SUBSCRIPTION_INVALID
   */
  async redeliver(id: string, sequence: number): Promise<WebhookSubscription> {
    if (!Number.isSafeInteger(sequence) || sequence < 1) {
      throw invalidMember('sequence', `is ${sequence}; it must be a whole number of at least 1`)
    }
    const moved = await this.#stored.move(id, ({ record: { type }, cursor: { node, generation } }) => {
      if (type !== 'events_store') throw invalidMember('type', `is ${type}; only events stores are replayed`)
      return { node, generation: generation + 1, next: sequence, done: [] }
    })
    return viewOf(moved)
  }

  /** Sends a test message to the endpoint, signed as a delivery. @throws WebhookError SUBSCRIPTION_UNKNOWN */
  async test(id: string): Promise<TestResult> {
    const known = await this.#stored.find(id)
    const format = this.#formats.get(known.record.format)
    if (format === undefined) return { error: `the server has no format ${known.record.format}` }
    return sendTest(known, format, { box: this.#box, policy: this.#policy, client: this.#client })
  }

  /** Returns the state of this node. */
  stats(): WebhookStats {
    const subscriptions: Record<WebhookState, number> = { active: 0, failing: 0, paused: 0, disabled: 0 }
    for (const known of this.#index.all()) subscriptions[viewOf(known).state]++
    return { subscriptions, served: this.#serving.size, oldestMs: this.#serving.oldestMs() }
  }

  /**
   * Stops the deliveries of this node. Attempts in flight may end within `graceMs`; other nodes take over after that.
   * Idempotent.
   */
  close(graceMs = 5_000): Promise<void> {
    this.#closed ??= this.#close(graceMs)
    return this.#closed
  }

  async #close(graceMs: number): Promise<void> {
    await this.#serving.close(graceMs)
    await this.#client.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #change(id: string, change: (record: SubscriptionRecord) => SubscriptionRecord): Promise<WebhookSubscription> {
    return viewOf(await this.#stored.change(id, change))
  }

  #assertReady(): void {
    if (this.#closed === undefined && this.#serving.current) return
    throw new WebhookError('WEBHOOKS_UNAVAILABLE', 'the subscriptions are not available now; try again later')
  }

  /** @throws WebhookError SUBSCRIPTION_LIMIT */
  #assertRoomFor({ owner, type, channel }: NewWebhookSubscription): void {
    const source = type === RUN_SOURCE ? this.#sources.get(type) : undefined
    const limit = source?.maxPerOwner ?? this.#options.maxPerOwner ?? 100
    const count = this.#count((one) => one.owner === owner && (one.type === RUN_SOURCE) === (type === RUN_SOURCE))
    if (limit > 0 && count >= limit) {
      const setting = source === undefined ? ' (WEBHOOKS_MAX_PER_OWNER)' : ' of this type'
      const text = `the caller has ${count} subscriptions; it may have ${limit}${setting}; delete one`
      throw new WebhookError('SUBSCRIPTION_LIMIT', text, { limit })
    }
    if (source === undefined) return
    const { maxPerChannel } = source
    if (this.#count((one) => one.type === type && one.channel === channel) < maxPerChannel) return
    const text = `${channel} has ${maxPerChannel} subscriptions, its limit; delete one`
    throw new WebhookError('SUBSCRIPTION_LIMIT', text, { limit: maxPerChannel, channel })
  }

  #count(where: (one: Pick<NewWebhookSubscription, 'owner' | 'type' | 'channel'>) => boolean): number {
    return this.#index.count(where) + this.#creating.filter(where).length
  }

  async #ask(url: URL, request: Parameters<EndpointClient['send']>[1]): Promise<EndpointAnswer> {
    try {
      return await this.#client.send(this.#client.to(url.href), request)
    } catch (error) {
      if (error instanceof WebhookError) throw error
      // The cause could describe the network of the server.
      const text = `the endpoint gave no answer to ${request.method}`
      throw new WebhookError('ENDPOINT_UNVERIFIED', text, { reason: classOf(error) })
    }
  }

  async #disable(known: KnownSubscription, reason: string): Promise<void> {
    const { id, record } = known
    await this.#stored.replace(known, { ...record, state: 'disabled', reason })
    this.#options.hooks?.disabled?.({ id, owner: record.owner, reason })
  }
}

/** Returns the secrets with a new one. The last one signs for the time of a rotation. */
function withNewest({ secrets: [last] }: SubscriptionRecord, sealed: string): SubscriptionRecord['secrets'] {
  return [{ sealed }, ...(last === undefined ? [] : [{ sealed: last.sealed, untilMs: Date.now() + ROTATION_MS }])]
}
