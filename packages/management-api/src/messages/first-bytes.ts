/** Returns the first bytes of a body, without an incomplete character at the end. */
export function firstBytes(body: Uint8Array, bytes: number): Uint8Array {
  if (body.byteLength <= bytes) return body
  let end = bytes
  for (let back = 0; back < 3 && end > 0 && isContinuation(body[end]); back++) end--
  return body.subarray(0, isContinuation(body[end]) ? bytes : end)
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
