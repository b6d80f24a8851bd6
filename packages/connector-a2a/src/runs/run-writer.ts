import { Buffer } from 'node:buffer'

import type { BrokerHandle, Message, Subscription } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import { retry } from '@signalbox/broker-core/internal'

import { STREAM_FAILURES } from '../stream/failures.ts'
import { controlChannel, decodeControl, encodeHeartbeat, streamChannel } from '../stream/link/messages.ts'
import type { EndMark } from '../stream/link/messages.ts'
import type { SenderOwner, StreamSink } from '../stream/link/sender.ts'
import { firstMoment } from '../stream/stream-timer.ts'
import type { WireVersion } from '../wire/index.ts'
import { LoggedEvents } from './logged-events.ts'
import { CHUNK_BYTES, chunksOf, lastEventOf } from './chunks.ts'
import type { RunChunk, RunLog, RunOrigin } from './run-log.ts'
import type { SeenTask } from './seen-task.ts'

/** The shortest time between two chunks of a run, in ms: 200 events a second cost 20 appends. */
const PACE_MS = 50

/** Bytes that are not written yet, above which the agent is not read further. */
const MAX_UNWRITTEN = 1_048_576

/** The most events and bytes of a run that are kept. The oldest chunks are removed. */
const MAX_EVENTS = 10_000
const MAX_BYTES = 16 * 1024 * 1024

/** Longer ids of tasks are not recorded. */
const MAX_ID_CHARACTERS = 256

export interface RunWriterOptions {
  readonly system: BrokerHandle
  readonly log: RunLog
  readonly run: string
  readonly origin: RunOrigin
  /** The last chunk that another node has written. @default none */
  readonly after?: RunChunk | undefined
  readonly heartbeatMs: number
  /** Time without an event or a sign of life of the agent after which the run ends, in ms; 0 is never. */
  readonly idleMs: number
  /** Awaited before the first chunk with a task is shown: by that record others find the run. */
  readonly begun: (taskId: string) => Promise<unknown>
  /** Aborted when this node stops: another one continues the run. */
  readonly stopped: AbortSignal
  readonly failed: (error: unknown) => void
}

/** A chunk that is kept in the log. */
interface KeptChunk {
  readonly number: number
  readonly first: number
  readonly bytes: number
}

/**
 * Writes the events of a run in chunks, one after another. A reader sees an event only when its chunk is durable, and
 * readers never slow it. An agent's streams write to it one after another: a second one continues a run whose
 * connection was cut.
 */
export class RunWriter implements StreamSink {
  readonly #options: RunWriterOptions
  #owner: SenderOwner | undefined
  /** `broken`: the connection was cut, and the run may go on over another. `ending`: the last event was pushed. */
  #state: 'open' | 'broken' | 'ending' | 'closed' = 'open'
  #control: Promise<Subscription> | undefined
  #wire: WireVersion | undefined
  #task: SeenTask | undefined
  #recorded: string | undefined
  #number: number
  /** The sequence of the last event that was pushed. */
  #sequence: number
  /** The texts of events, in latin1, that are no chunk yet, and the sequence of the first. */
  #texts: string[] = []
  #textBytes = 0
  #first = 0
  #isUrgent = true
  #isWriting = false
  #writtenAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #nextBeat: number
  #lastEvent = performance.now()
  #agentHeard = false
  readonly #kept: KeptChunk[] = []
  #keptBytes = 0
  #isTrimming = false
  /** The first chunk that was not removed. */
  #trimmed: number
  /** Called when everything that was pushed is written. */
  #waiters: (() => void)[] = []

  constructor(options: RunWriterOptions) {
    const { after, heartbeatMs } = options
    this.#options = options
    this.#wire = after?.wire
    this.#number = after?.number ?? 0
    this.#trimmed = this.#number + 1
    this.#sequence = after === undefined ? 0 : lastEventOf(after)
    this.#nextBeat = firstMoment(performance.now(), heartbeatMs)
  }

  /** The last task that an event named. */
  get task(): SeenTask | undefined {
    return this.#task
  }

  get wire(): WireVersion | undefined {
    return this.#wire
  }

  /** The sequence of the last event. */
  get sequence(): number {
    return this.#sequence
  }

  /** True if the run ended with its last event, and not with its connection. */
  get isOver(): boolean {
    return this.#state === 'ending' || this.#state === 'closed'
  }

  /** Begins to write the events of a stream in this version of A2A; undefined for an agent's own dialect. */
  events(wire: WireVersion | undefined): LoggedEvents {
    this.#wire = wire
    // After a cut, events may be missing before the first one.
    const gap = this.#sequence === 0 ? undefined : this.#sequence + 1
    return new LoggedEvents(wire, (task) => this.#see(task), gap)
  }

  /** Continues with a task that an earlier chunk names. */
  resumeTask(taskId: string): void {
    this.#task = { taskId, contextId: undefined, phase: 'open' }
    this.#recorded = taskId
  }

  /** Accepts the events of a stream from now on. */
  attach(owner: SenderOwner): this {
    this.#owner = owner
    this.reopen()
    return this
  }

  /** Accepts events again after a connection was cut. */
  reopen(): void {
    if (this.#state === 'broken') this.#state = 'open'
  }

  /** @inheritdoc A second stream of the run has the same control channel. */
  async open(): Promise<void> {
    this.#control ??= this.#listen()
    await this.#control
  }

  get blocked(): boolean {
    return this.#textBytes > MAX_UNWRITTEN
  }

  get waitingBytes(): number {
    return this.#textBytes
  }

  get delivered(): boolean {
    return this.#state === 'closed' || (this.#state !== 'open' && this.#texts.length === 0 && !this.#isWriting)
  }

  /** @inheritdoc One text is one event. An end without a text is that of a connection. */
  push(text: string, end: EndMark | undefined): void {
    if (this.#state !== 'open') return
    this.#lastEvent = performance.now()
    if (text !== '') {
      this.#sequence++
      if (this.#texts.length === 0) this.#first = this.#sequence
      this.#texts.push(text)
      this.#textBytes += text.length
    }
    if (end !== undefined) this.#state = text === '' ? 'broken' : 'ending'
    if (end !== undefined) this.#isUrgent = true
    if (end !== undefined || this.#textBytes >= CHUNK_BYTES) this.flush()
  }

  /** @inheritdoc The log has texts only. */
  pushLarge(parts: readonly Uint8Array[], end: EndMark): void {
    this.push(Buffer.concat(parts).toString('latin1'), end)
  }

  /** @inheritdoc Waits for the pace of the log, unless readers wait for these events. */
  flush(): void {
    if (this.#texts.length === 0 || this.#isWriting) return
    clearTimeout(this.#timer)
    const waitMs = this.#isUrgent ? 0 : this.#writtenAt + PACE_MS - performance.now()
    if (waitMs <= 0) this.#write()
    else this.#timer = setTimeout(() => this.#write(), waitMs)
  }

  /** @inheritdoc The run of a node that stops goes on at another. */
  cutShort(text: string, end: EndMark): void {
    if (this.#options.stopped.aborted) this.push('', end)
    else this.push(text, end)
  }

  heard(): void {
    this.#agentHeard = true
  }

  tick(now: number): void {
    if (this.#state === 'closed') return
    const { heartbeatMs, idleMs } = this.#options
    if (this.#agentHeard) this.#lastEvent = now
    if (this.#state === 'open' && idleMs > 0 && now - this.#lastEvent >= idleMs) this.#endIdle()
    if (now < this.#nextBeat) return
    this.#nextBeat = now + heartbeatMs
    this.#beat()
  }

  /** @inheritdoc A run that is not over stays open: another connection may continue it. */
  close(): void {
    if (this.#state === 'open' || this.#state === 'broken') {
      this.#state = 'broken'
      this.#owner = undefined
    } else this.shut()
  }

  /** Ends the writing. Idempotent. */
  shut(): void {
    if (this.#state === 'closed') return
    const isLeft = this.#state !== 'ending' && this.#number > 0
    this.#state = 'closed'
    clearTimeout(this.#timer)
    this.#texts = []
    this.#control?.then((control) => control.close()).catch(() => {})
    if (isLeft) this.#beat(true)
    this.#release()
  }

  /** Resolves when everything that was pushed is durable, or the writing has ended. */
  async written(): Promise<void> {
    if (this.#state === 'closed' || (this.#texts.length === 0 && !this.#isWriting)) return
    await new Promise<void>((resolve) => this.#waiters.push(resolve))
  }

  #release(): void {
    for (const resolve of this.#waiters.splice(0)) resolve()
  }

  #listen(): Promise<Subscription> {
    const { system, run } = this.#options
    return system.events.subscribe(controlChannel(run), {}, (message) => this.#onControl(message))
  }

  #see(task: SeenTask): void {
    if (task.taskId.length > MAX_ID_CHARACTERS) return
    // Readers wait for the first news of a task, and for the end of its turn.
    if (task.phase !== 'open' || this.#task === undefined) this.#isUrgent = true
    this.#task = task
  }

  #endIdle(): void {
    const { text, end = 'error' } = new LoggedEvents(this.#wire, () => {}).failure(STREAM_FAILURES.IDLE)
    const owner = this.#owner
    this.push(text, end)
    owner?.onLost()
  }

  /** @param isLeft True if this node does not continue the run */
  #beat(isLeft = false): void {
    const { system, run } = this.#options
    const message = encodeHeartbeat({ last: this.#number, alive: this.#agentHeard, isLeft })
    this.#agentHeard = false
    system.events.publish(streamChannel(run), message).catch(() => {})
  }

  #onControl(message: Message): void {
    if (decodeControl(message)?.kind !== 'cancel' || this.#state !== 'open') return
    try {
      this.#owner?.onCancel()
    } catch (error) {
      this.#owner?.crash(error)
    }
  }

  #write(): void {
    this.#timer = undefined
    this.#isWriting = true
    this.#writtenAt = performance.now()
    this.#isUrgent = false
    this.#append().then(
      (isOwn) => this.#onWritten(isOwn),
      (error: unknown) => {
        this.#options.failed(error)
        this.#onWritten(false)
      },
    )
  }

  #onWritten(isOwn: boolean): void {
    const owner = this.#owner
    this.#isWriting = false
    if (!isOwn || this.#state === 'closed') {
      this.shut()
      owner?.onLost()
      return
    }
    if (this.#texts.length > 0) {
      this.flush()
      if (!this.blocked && this.#state === 'open') owner?.onRoom()
      return
    }
    this.#release()
    if (this.#state === 'ending') this.shut()
    if (this.#state === 'open') owner?.onRoom()
    else owner?.onDelivered()
  }

  /** Appends the texts that were pushed so far. Resolves with false if another node writes the run now. */
  async #append(): Promise<boolean> {
    const { begun, log, origin, run } = this.#options
    const texts = this.#texts
    const isLast = this.#state === 'ending'
    const taskId = this.#task?.taskId
    const common = { ...origin, wire: this.#wire, taskId }
    const first = this.#first
    this.#texts = []
    this.#textBytes = 0
    if (taskId !== undefined && taskId !== this.#recorded) {
      await this.#insist(() => begun(taskId))
      this.#recorded = taskId
    }
    for (const part of chunksOf(texts, first)) {
      const chunk = { ...common, ...part, number: this.#number + 1, end: isLast && part.isLast }
      if (!(await this.#insist(() => log.append(run, chunk)))) return false
      this.#number = chunk.number
      this.#keep({ number: chunk.number, first: chunk.first, bytes: chunk.body.byteLength })
    }
    return true
  }

  /** The store may be full, or without a quorum: the agent waits until it accepts events again. */
  #insist<T>(write: () => Promise<T>): Promise<T> {
    return retry(write, {
      mayRetry: (error) => isBrokerError(error, 'ENGINE_UNAVAILABLE') && this.#state !== 'closed',
      signal: this.#options.stopped,
    })
  }

  #keep(chunk: KeptChunk): void {
    this.#kept.push(chunk)
    this.#keptBytes += chunk.bytes
    for (let [oldest] = this.#kept; oldest !== undefined && this.#kept.length > 1; [oldest] = this.#kept) {
      if (this.#keptBytes <= MAX_BYTES && this.#sequence - oldest.first < MAX_EVENTS) break
      this.#kept.shift()
      this.#keptBytes -= oldest.bytes
    }
    if (!this.#isTrimming) void this.#trim()
  }

  /** Removes the chunks that are not kept. Retention removes those for which it fails. */
  async #trim(): Promise<void> {
    const { log, run } = this.#options
    this.#isTrimming = true
    for (let first = this.#kept[0]?.number ?? 0; first > this.#trimmed; first = this.#kept[0]?.number ?? 0) {
      await log.trim(run, first, this.#trimmed).catch(() => {})
      this.#trimmed = first
    }
    this.#isTrimming = false
  }
}
