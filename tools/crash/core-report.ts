/** The reports of a broker to the harness: each step after its confirmation; `acking` and `nacking` before the call. */
export type CoreReport =
  | { readonly step: 'ready' | 'drained' }
  | { readonly step: 'sent' | 'acking' | 'acked' | 'nacking'; readonly id: string }
  | { readonly step: 'leased'; readonly id: string; readonly lapses: boolean }
  | { readonly step: 'failed'; readonly text: string }
