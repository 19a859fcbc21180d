/** What a model is told about the message to which a person replies. */
import type { View } from '../../../core/redactor/redactor.ts'
import type { QuotedMessage } from '../adapter.ts'
import { texts } from './texts.ts'

/** Characters that the model sees. */
const LIMIT = 500
/** Of the bot's own message, which the conversation already has: enough to recognise it. */
const OWN_LIMIT = 200

/** One line, which the quoted text cannot end. Undefined without text. Redacted before it is cut: the cut could leave a part of a secret. */
export function quotedText({ text, sender, own = false }: QuotedMessage, redactor: View): string | undefined {
	const whole = text.trim()
	if (whole === '') return undefined
	const { text: shown, dropped } = redactor.cut(whole, own ? OWN_LIMIT : LIMIT, 'record')
	const begin = dropped > 0 ? `${shown.replace(/[\ud800-\udbff]$/, '')}…` : shown
	return texts.quoted({ text: begin, sender: sender ?? '', own })
}
