/** The member of `_meta` that relates a message on a stream to its `subscriptions/listen`, with a leading comma. */
export function subscriptionMeta(id: string): string {
  return `,"io.modelcontextprotocol/subscriptionId":${id}`
}

/**
 * Returns the first message on the stream of a `subscriptions/listen`: the notifications that the server will send.
 * They are those of tasks, because the tools of a server never change.
 * @param id The source text of the request's id
 * @param taskIds The tasks whose changes are sent; `undefined` if the client named none
 */
export function acknowledgement(id: string, taskIds?: readonly string[]): string {
  const notifications = JSON.stringify({ taskIds })
  return `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":${notifications},"_meta":${metaText(id)}}}`
}

/**
 * Returns the message on the stream of a `subscriptions/listen` about a change of a task.
 * @param members The members of the task as JSON text without the braces
 */
export function taskNotification(id: string, members: string): string {
  return `{"jsonrpc":"2.0","method":"notifications/tasks","params":{${members},"_meta":${metaText(id)}}}`
}

function metaText(id: string): string {
  return `{"io.modelcontextprotocol/subscriptionId":${id}}`
}
