import type { AnswerForm, Compat } from '../order.ts'

/** What a server can do beyond its dialect: what the operator set, and what its refusals taught. */
export interface Traits extends Compat {
	/** Where the system prompt goes; `user`: before the first message. Default `system`. */
	system_role?: 'developer' | 'user'
	/** Schemas of tools use nothing but the common keywords. */
	simple_schemas?: boolean
	/** Ids of calls have the form that every server accepts. */
	short_ids?: boolean
	/** The model sets the budget of its thinking itself. */
	adaptive_thinking?: boolean
	/** The user and the assistant speak in turn, also where one of them said nothing. */
	alternate?: boolean
	/** A message without text has empty text instead of null. */
	text_always?: boolean
	/** What came with earlier answers is not sent back. */
	state?: boolean
	/** Blobs of attachments that are described in words. */
	unreadable?: readonly string[]
	/** The form of the answer is not passed: JSON is requested in words only, and calls are not forced. */
	json?: false
	forced?: false
	/** Fields that are left out, by the dialect's names. */
	drop?: readonly string[]
}

/** The parts of the form of an answer that this server supports. */
export function supportedForm(form: AnswerForm | undefined, { json, forced, tools }: Traits): AnswerForm {
	return {
		...(form?.json && json !== false && { json: form.json }),
		...(form?.call && forced !== false && tools !== false && { call: form.call }),
	}
}
