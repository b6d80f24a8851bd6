/** A version of the A2A protocol, as an agent or a caller speaks it. */
export type WireVersion = '1.0' | '0.3'
