/** Limits and time-outs of a stream. */
export interface StreamLimits {
  /** The largest event of an agent, in bytes (AgentMaxResponseBytes). @default 10485760 */
  readonly maxEventBytes?: number
  /** The most bytes in transit from the agent's node that the client has not read. @default 262144 */
  readonly windowBytes?: number
  /** The most frames in transit that the client has not read. @default 64 */
  readonly windowFrames?: number
  /** The longest time between two grants of credit, in ms. @default 5000 */
  readonly creditMs?: number
  /** The longest time between two messages of the agent's node, in ms. @default 5000 */
  readonly heartbeatMs?: number
  /**
   * The time without a message of the agent's node after which the stream is interrupted, in ms.
   * @default 15000
   */
  readonly silenceMs?: number
  /**
   * The time without a grant of credit after which the agent's node abandons the stream, in ms.
   * @default 15000
   */
  readonly noCreditMs?: number
  /** The longest time for which a client may stop reading, in ms; 0 is no limit. @default 30000 */
  readonly slowConsumerMs?: number
}

export type ResolvedStreamLimits = Required<StreamLimits>

const DEFAULTS: ResolvedStreamLimits = Object.freeze({
  maxEventBytes: 10_485_760,
  windowBytes: 262_144,
  windowFrames: 64,
  creditMs: 5_000,
  heartbeatMs: 5_000,
  silenceMs: 15_000,
  noCreditMs: 15_000,
  slowConsumerMs: 30_000,
})

export function resolveLimits(limits: StreamLimits): ResolvedStreamLimits {
  return { ...DEFAULTS, ...limits }
}
