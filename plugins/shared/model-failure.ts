/** Whether the last model call failed, as events report it. */

export interface ModelFailure {
	at: string
	/** Null if the failure does not name it. */
	provider: string | null
	message: string
}

/** An event that reports the end of a model call. */
export interface ModelOutcome {
	event_type: string
	timestamp: string
	payload: { provider?: string; from?: string; message?: string; error?: string; code?: string }
}

const NAMED = 'model.response,model.retry,model.fallback'
/** The latest outcomes in which the default provider is looked for. A call that fails and its fallback together have a few. */
const NAMED_LIMIT = 20

/**
 * The failure of the last call, or of the last call to the default provider: then others have answered. Null if that call was
 * answered. `read`: returns events, newest first, from a path of the API.
 */
export async function modelFailure(
	read: (path: string) => Promise<{ events: ModelOutcome[] } | null | undefined>,
	defaultProvider: string | undefined,
): Promise<ModelFailure | null> {
	// Failed runs do not name the provider, and many at once would hide the outcomes that do.
	const [last, named] = await Promise.all([
		read(`/v1/audit?event_type=${NAMED},run.failed&limit=1`),
		read(`/v1/audit?event_type=${NAMED}&limit=${NAMED_LIMIT}`),
	])
	const isDefault = ({ payload: { provider, from } }: ModelOutcome) => (provider ?? from) === defaultProvider
	return failureIn(last?.events[0]) ?? failureIn(named?.events.find(isDefault))
}

/** Null for a call that was answered, and for a run that failed for another reason. */
function failureIn(latest: ModelOutcome | undefined): ModelFailure | null {
	if (!latest || latest.event_type === 'model.response') return null
	const { timestamp: at, payload } = latest
	const { provider = payload.from ?? null, message = payload.error ?? '', code = '' } = payload
	return latest.event_type === 'run.failed' && !code.startsWith('model_') ? null : { at, provider, message }
}
