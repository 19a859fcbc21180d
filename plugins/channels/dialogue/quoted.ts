/** The quote of a replied-to message, for the model. */
import type { View } from '../../../core/redactor/redactor.ts'
import type { QuotedMessage } from '../adapter.ts'
import { texts } from './texts.ts'

/** Limit of the quote, in characters. */
const LIMIT = 500
/** For a message of the bot, which is already in the conversation: enough to recognize it. */
const OWN_LIMIT = 200

/** One line, which the quoted text cannot break out of. Undefined without text. Redacts before cutting, since a cut could leave part of a secret. */
export function quotedText({ text, sender, own = false }: QuotedMessage, redactor: View): string | undefined {
	const whole = text.trim()
	if (whole === '') return undefined
	const { text: shown, dropped } = redactor.cut(whole, own ? OWN_LIMIT : LIMIT, 'record')
	const begin = dropped > 0 ? `${shown.replace(/[\ud800-\udbff]$/, '')}…` : shown
	return texts.quoted({ text: begin, sender: sender ?? '', own })
}
