/** The ids that clients see. They contain the ids of what they refer to, so no mapping has to be stored. */

/** A call of a client's tool: the run that ended with it, and its place among that run's calls. At most 40 characters, as OpenAI has it. */
export function callId(run_id: string, at: number): string {
	return `call_${hexOf(run_id)}${at.toString(36)}`
}

/** Undefined if it is not one of ours. */
export function callIn(id: string): { run_id: string; at: number } | undefined {
	const [, hex, at] = /^call_([0-9a-f]{32})([0-9a-z]{1,2})$/.exec(id) ?? []
	return hex === undefined || at === undefined ? undefined : { run_id: uuidOf(hex), at: Number.parseInt(at, 36) }
}

/** A stored response, and the uid of its agent. */
export function responseId(uid: string, id: string): string {
	return `resp_${hexOf(uid)}${hexOf(id)}`
}

export function responseIn(id: string): { uid: string; id: string } | undefined {
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
