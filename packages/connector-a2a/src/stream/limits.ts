/** What bounds a stream, and when it is given up. All defaults are decision A11's. */
export interface StreamLimits {
  /** The largest event of an agent, in bytes (AgentMaxResponseBytes). @default 10485760 */
  readonly maxEventBytes?: number
  /** Bytes on the way between the agent's node and the client's that the client has not taken yet. @default 262144 */
  readonly windowBytes?: number
  /** Frames on the way that the client has not taken yet. @default 64 */
  readonly windowFrames?: number
  /** Milliseconds between two grants of credit at the most. @default 5000 */
  readonly creditMs?: number
  /** Milliseconds between two signs of life of the agent's node at the most. @default 5000 */
  readonly heartbeatMs?: number
  /** Milliseconds without a sign of life after which a stream is interrupted. @default 15000 */
  readonly silenceMs?: number
  /** Milliseconds without a grant of credit after which the agent's node gives the stream up. @default 15000 */
  readonly noCreditMs?: number
  /** Milliseconds that a client may take nothing; 0 is no limit. @default 30000 */
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
