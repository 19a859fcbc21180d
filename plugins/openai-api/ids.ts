/** The ids that clients see. They contain the gateway's ids, so no mapping has to be stored. */

/** The id of a client's tool call: the run that ended with it, and its index. At most 40 characters, OpenAI's limit. */
export function callId(run_id: string, at: number): string {
	return `call_${hexOf(run_id)}${at.toString(36)}`
}

/** Reverses `callId`; undefined for an id of another form. */
export function parseCallId(id: string): { run_id: string; at: number } | undefined {
	const [, hex, at] = /^call_([0-9a-f]{32})([0-9a-z]{1,2})$/.exec(id) ?? []
	return hex === undefined || at === undefined ? undefined : { run_id: uuidOf(hex), at: Number.parseInt(at, 36) }
}

/** The id of a stored response: the uid of its agent, and its own id. */
export function responseId(uid: string, id: string): string {
	return `resp_${hexOf(uid)}${hexOf(id)}`
}

/** Reverses `responseId`; undefined for an id of another form. */
export function parseResponseId(id: string): { uid: string; id: string } | undefined {
	const [, uid, own] = /^resp_([0-9a-f]{32})([0-9a-f]{32})$/.exec(id) ?? []
	return uid === undefined || own === undefined ? undefined : { uid: uuidOf(uid), id: own }
}

/** A UUID without its dashes. */
export function hexOf(uuid: string): string {
	return uuid.replaceAll('-', '')
}

function uuidOf(hex: string): string {
	return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
