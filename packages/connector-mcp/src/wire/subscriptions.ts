/** The member of `_meta` that relates a message on a stream to its `subscriptions/listen`, with a leading comma. */
export function subscriptionMeta(id: string): string {
  return `,"io.modelcontextprotocol/subscriptionId":${id}`
}

/**
 * Returns the first message on the stream of a `subscriptions/listen`: the notifications that the server will send.
 * There are none, because the tools of a server never change.
 * @param id The source text of the request's id
 */
export function acknowledgement(id: string): string {
  const meta = `{"io.modelcontextprotocol/subscriptionId":${id}}`
  return `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":${meta}}}`
}
