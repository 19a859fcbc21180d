/** The parts of the API's responses that the pages use. docs/openapi.json has the complete schemas. */

export type RunStatus = 'queued' | 'started' | 'paused' | 'completed' | 'failed' | 'stopped'

export interface Question {
	question_id: string
	question: string
	options?: string[]
	kind?: 'approval' | 'login'
	tool?: string
	arguments?: Record<string, unknown>
}

export interface Run {
	run_id: string
	agent: string
	status: RunStatus
	trigger: string
	conversation: string
	prompt: string
	created_at: string
	started_at: string | null
	ended_at: string | null
	usage: Usage
	error: { code: string; message: string } | null
	open_question: (Question & { run_id: string }) | null
	parent_run_id: string | null
}

export interface Usage {
	input_tokens: number
	output_tokens: number
	cost?: number
}

export interface Step {
	kind: 'model' | 'tool'
	name?: string
	provider?: string
	model?: string
	started_at: string
	ended_at: string | null
	duration_ms: number | null
	usage?: Usage | null
	/** A code. */
	error: string | null
}

export interface GatewayEvent {
	event_id: string
	timestamp: string
	agent_id: string | null
	run_id: string | null
	event_type: string
	payload: Record<string, unknown>
}

/** GET /v1/agents/{name}/blobs/{blob} returns its bytes. */
export interface StoredFile {
	blob: string
	media_type: string
	size: number
	name?: string
	/** The transcribed text of a recording. */
	transcript?: string | null
}

export interface Message {
	role: string
	content: string
	timestamp: string
	attachments?: StoredFile[]
}

export interface Skill {
	id: string
	name: string
	description: string
	status: 'active' | 'quarantined'
	installed_at: string
}

export interface AgentItem {
	name: string
	created_at: string
}

export interface Agent extends AgentItem {
	persona: string | null
	config: Record<string, unknown>
}
