/** Runs and questions as the API returns them. */
export interface Run {
	run_id: string
	agent: string
	status: 'queued' | 'started' | 'paused' | 'completed' | 'failed' | 'stopped'
	trigger: string
	conversation: string
	prompt: string
	answer: string | null
	/** Those that were sent with the answer. */
	files?: RunFile[]
	created_at: string
	started_at: string | null
	ended_at: string | null
	usage: { input_tokens: number; output_tokens: number; cost?: number }
	finish_reason: string | null
	error: { code: string; message: string } | null
	question: Question | null
	/** Its own question, or that of a sub-agent it waits for. */
	open_question: Question | null
	waits_for: string | null
	parent_run_id: string | null
}

export interface RunFile {
	name: string
	blob: string
	media_type: string
	size: number
}

export interface Question {
	question_id: string
	question: string
	options?: string[]
	/** Absent: a question of the agent. */
	kind?: 'approval' | 'login'
	/** The run that asks: the followed run or a sub-agent of it. */
	run_id?: string
}
