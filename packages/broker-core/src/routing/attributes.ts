import type { ChannelType } from '../channel.ts'
import type { OutgoingMessage } from '../message.ts'

/** A CloudEvents attribute travels as the tag of its name after this prefix. */
const ATTRIBUTE_PREFIX = 'ce_'

/**
 * The CloudEvents attributes of a message, by name: its tags `ce_…`, of type String all of them. What every event has
 * (`id`, `source`, `type`, `specversion`) is made up where the tag is missing; `subject` and `time`, which an event may
 * lack, only for a message that is no CloudEvent, which is one without any `ce_` tag.
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
