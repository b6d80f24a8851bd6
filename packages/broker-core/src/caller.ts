/** Who makes a call, verified at the edge. Everything the Broker does is done for a caller. */
export interface Caller {
  /** 1–256 visible ASCII characters (S2). */
  readonly clientId: string
  /** Where the call came from, for those who keep a record of it; undefined when it came over no network. */
  readonly address?: string
  /**
   * Whose limits the call counts against: the ClientID of a verified caller, the network address of an anonymous one.
   *
   * @default clientId
   */
  readonly account?: string
}

/** The principal of every caller while server authentication is off (specification, "Authentication" 3). */
export const ANONYMOUS: Caller = Object.freeze({ clientId: 'anonymous' })
