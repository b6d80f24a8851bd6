import type { OptionType, OptionTypes } from '@signalbox/broker-core/internal'
import { checkOptions } from '@signalbox/broker-core/internal'

import { anonymousAuthenticator } from '../authentication/authenticator.ts'
import type { Authenticator } from '../authentication/authenticator.ts'
import { DEFAULT_MAX_BODY_BYTES } from './body.ts'
import type { FrontDoor } from './gate.ts'
import type { TrustedOrigins } from './web-policy.ts'

/** The options of all connectors. */
export interface ConnectorOptions {
  /** The authenticator that verifies callers. @default every caller is `anonymous` */
  readonly authenticator?: Authenticator
  /** The web pages that may call. @default 'auto' */
  readonly trustedOrigins?: TrustedOrigins
  /** The address that the server binds to. `auto` trusts it. @default none */
  readonly bindHost?: string
  /**
   * Limits of callers and of the process, trusted proxies, allowed hosts. Share one between connectors.
   * @default the default limits, for this connector alone
   */
  readonly frontDoor?: FrontDoor | undefined
  /** The largest request body, in bytes; at least 1. @default 10485760 */
  readonly maxBodyBytes?: number
  /** Time that calls in flight have to finish when the connector closes, in ms; 0 does not wait. @default 5000 */
  readonly drainMs?: number
  /**
   * Runs the preValidation and preHandler hooks of the Fastify host. If `false`, the connector serves a request right
   * after the onRequest and preParsing hooks, which saves about a tenth of the CPU time of a cheap call.
   * @default true
   */
  readonly runHostHooks?: boolean
}

/** One option of a connector: its type, its default, and the range of a number. */
export interface OptionRule<Value = unknown> {
  readonly type: OptionType
  /** @default the option has no default, and may be absent */
  readonly default?: Value
  readonly min?: number
  readonly max?: number
}

/** The rule of every option of `Options`, so that an option without one does not compile. */
export type OptionRules<Options> = { readonly [Name in keyof Options]-?: OptionRule<Exclude<Options[Name], undefined>> }

/** The options of a connector, with the defaults of its rules. An option without a default may be `undefined`. */
export type Resolved<Options, Rules> = {
  readonly [Name in keyof Options]-?: Name extends keyof Rules
    ? Rules[Name] extends { readonly default: unknown }
      ? Exclude<Options[Name], undefined>
      : Options[Name] | undefined
    : never
}

/** The largest number of milliseconds that a timer takes, and the most bytes of a body. */
export const MAX_TIMER_MS = 2_147_483_647

/**
 * Checks the options that a program passes, and fills in the defaults.
 * @param source The name of the function, for error messages
 * @throws TypeError for an unknown option or another type, RangeError for a number out of range
 */
export function resolveOptions<Options extends object, Rules extends OptionRules<Options>>(
  source: string,
  options: Options,
  rules: Rules,
): Resolved<Options, Rules>
export function resolveOptions(
  source: string,
  options: Readonly<Record<string, unknown>>,
  rules: Readonly<Record<string, OptionRule>>,
): unknown {
  checkOptions(source, options, Object.fromEntries(Object.entries(rules).map(([name, { type }]) => [name, type])))
  const resolved: Record<string, unknown> = {}
  for (const [name, { default: byDefault, min, max }] of Object.entries(rules)) {
    const value = options[name] ?? byDefault
    resolved[name] = value
    if (typeof value !== 'number' || min === undefined) continue
    const most = max ?? MAX_TIMER_MS
    if (!(value >= min && value <= most)) {
      throw new RangeError(`${name}: ${value}; allowed is a number from ${min} to ${most}`)
    }
  }
  return resolved
}

/** The default of {@link ConnectorOptions.drainMs}. */
export const DEFAULT_DRAIN_MS = 5000

/** The rules of {@link ConnectorOptions}, which the rules of each connector include. */
export const CONNECTOR_OPTIONS = {
  authenticator: { type: 'object', default: anonymousAuthenticator },
  trustedOrigins: { type: 'texts', default: 'auto' },
  bindHost: { type: 'text' },
  frontDoor: { type: 'object' },
  maxBodyBytes: { type: 'number', default: DEFAULT_MAX_BODY_BYTES, min: 1 },
  drainMs: { type: 'number', default: DEFAULT_DRAIN_MS },
  runHostHooks: { type: 'boolean', default: true },
} as const satisfies OptionRules<ConnectorOptions>

/** The types of {@link ConnectorOptions}, for a connector that checks its options itself. */
export const CONNECTOR_OPTION_TYPES: OptionTypes<ConnectorOptions> = {
  authenticator: 'object',
  trustedOrigins: 'texts',
  bindHost: 'text',
  frontDoor: 'object',
  maxBodyBytes: 'number',
  drainMs: 'number',
  runHostHooks: 'boolean',
}
