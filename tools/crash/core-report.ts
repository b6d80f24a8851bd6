/** What a broker under the harness tells it: each step after it was confirmed; `acking` and `nacking` before they are asked for. */
export type CoreReport =
  | { readonly step: 'ready' | 'drained' }
  | { readonly step: 'sent' | 'acking' | 'acked' | 'nacking'; readonly id: string }
  | { readonly step: 'leased'; readonly id: string; readonly lapses: boolean }
  | { readonly step: 'failed'; readonly text: string }
