import { Joi } from '../../core/util/lazy-joi.ts'

/** The form of a conversation's id: printable ASCII characters without spaces. */
export const CONVERSATION_ID = /^[\x21-\x7e]{1,400}$/

/** Id of a conversation in a request. */
export const conversationId = Joi.string().pattern(CONVERSATION_ID, '1 to 400 printable ASCII characters')
