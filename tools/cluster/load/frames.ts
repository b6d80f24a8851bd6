import { Buffer } from 'node:buffer'

/** A message that a tool has sent, as `/ce` shows it: without a content type its body is in base64. */
export interface Frame {
  readonly data_base64: string
  readonly time: string
  /** On commands and queries. */
  readonly brokerrequestid?: string
}

export function bodyOf({ data_base64 }: Pick<Frame, 'data_base64'>): string {
  return Buffer.from(data_base64, 'base64').toString()
}
