import type { PolicyAction } from './authorization/vocabulary.ts'

/** The identity of a call's sender, verified by the connector. Every action of the Broker has a caller. */
export interface Caller {
  /** The verified id: 1 to 256 visible ASCII characters. */
  readonly clientId: string
  /** The network address of the call, for audit records; undefined for a call inside the process. */
  readonly address?: string
  /**
   * The account whose limits apply: the ClientID of a verified caller, or the network address of an anonymous one.
   * @default clientId
   */
  readonly account?: string
  /**
   * The actions that the caller's credentials allow, such as those of an access token's scopes. They restrict the
   * caller in addition to the policy.
   * @default all
   */
  readonly actions?: ReadonlySet<PolicyAction>
}

/** The caller of every request while authentication is off. */
export const ANONYMOUS: Caller = Object.freeze({ clientId: 'anonymous' })
