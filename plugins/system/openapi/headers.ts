/** Headers of all responses. */
export const everyHeader = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } }

/** Headers that any error may have. */
export const errorHeader = { 'X-Hint': { $ref: '#/components/headers/Hint' } }

export const sharedHeaders: Record<string, unknown> = {
	RequestId: {
		description:
			'Identifies the request in the log: the `X-Request-Id` of the request (1 to 128 of A-Z a-z 0-9 . _ -), or a new id.',
		schema: { type: 'string' },
		example: '0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05',
	},
	Hint: {
		description:
			"Present if the message suggests another request: that request as JSON, with its `route` in this document, the values of the route's path parameters in `params`, and `request`, its text in the message.",
		schema: { type: 'string', contentMediaType: 'application/json' },
		example: '{"route":"GET /v1/agents/{name}/skills","params":{"name":"ada"},"request":"GET /v1/agents/ada/skills"}',
	},
}
