import type { ChannelType } from '../channel.ts'
import type { OutgoingMessage } from '../message.ts'

/** The prefix of the tags that carry CloudEvents attributes. */
const ATTRIBUTE_PREFIX = 'ce_'

/**
 * Returns the CloudEvents attributes of a message by name: its tags `ce_…`, all of type String. Required attributes
 * without a tag (`id`, `source`, `type`, `specversion`) get a generated value. The optional attributes `subject` and
 * `time` get one only if the message has no `ce_` tag, that is, if it is no CloudEvent.
 */
export function attributesOf(
  type: ChannelType,
  channel: string,
  message: OutgoingMessage,
): (name: string) => string | undefined {
  const { tags } = message
  let plain: boolean | undefined
  let time: string | undefined
  const isPlain = (): boolean => {
    plain ??= !Object.keys(tags).some((tag) => tag.startsWith(ATTRIBUTE_PREFIX))
    return plain
  }
  return (name) => {
    const tag = tags[ATTRIBUTE_PREFIX + name]
    if (tag !== undefined) return tag
    switch (name) {
      case 'id':
        return message.id
      case 'source':
        return `/signalbox/${type}/${channel}`
      case 'type':
        return 'signalbox.message'
      case 'specversion':
        return '1.0'
      case 'subject':
        return isPlain() ? channel : undefined
      case 'time':
        if (!isPlain()) return undefined
        time ??= new Date().toISOString()
        return time
      default:
        return undefined
    }
  }
}
