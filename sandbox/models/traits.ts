import type { AnswerForm, Compat } from '../order.ts'

/** How a server differs from its dialect: as configured by the operator, and as learned from refusals. */
export interface Traits extends Compat {
	/** The role of the system prompt; `user`: before the first message. Default `system`. */
	system_role?: 'developer' | 'user'
	/** Schemas of tools use only the common keywords. */
	simple_schemas?: boolean
	/** Ids of calls have the form that every server accepts. */
	short_ids?: boolean
	/** The model sets its own thinking budget. */
	adaptive_thinking?: boolean
	/** Messages of the user and the assistant alternate; missing ones are filled in. */
	alternate?: boolean
	/** A message without text has empty text instead of null. */
	text_always?: boolean
	/** `false`: provider state is not sent back. */
	state?: boolean
	/** Blobs of attachments that are described in words. */
	unreadable?: readonly string[]
	/** The form of the answer is not passed: JSON is requested in words only, and calls are not forced. */
	json?: false
	forced?: false
	/** Fields that are omitted, by the dialect's names. */
	drop?: readonly string[]
}

/** The parts of the form of an answer that this server supports. */
export function supportedForm(form: AnswerForm | undefined, { json, forced, tools }: Traits): AnswerForm {
	return {
		...(form?.json && json !== false && { json: form.json }),
		...(form?.call && forced !== false && tools !== false && { call: form.call }),
	}
}
