/** True for a word that occurs in records and events themselves: redacting it would break the gateway and protect no secret. */
export function isOrdinary(value: string): boolean {
	return words.some((word) => word.includes(value))
}

const words = [
	// The marks that replace secrets.
	'[redacted:',
	'[redacted]',
	// Field names.
	...'accepted active_ms agent_id agent_uid allowed_tools annotations answered_at approved_at'.split(' '),
	...'approved_by approved_skills archived arguments asked_at binding_id bot_token_ref channel_id'.split(' '),
	...'children compaction_id connected_at conversation created_at deleting deletions delivered'.split(' '),
	...'delivery_count delivery_id description embedder ended_at event_type expires_at external_chat_id'.split(' '),
	...'failures fallback findings finish_reason firing_since generation grant_id heartbeats'.split(' '),
	...'idempotency_key input_schema input_tokens installed_at instead_of instructions last_delivery'.split(' '),
	...'last_error markdown max_tokens memories_before metadata name_hash not_offered output_tokens'.split(' '),
	...'parameters parent_run_id permissions policy_label primitives protocol_version provider question_id'.split(' '),
	...'questions received_at replaces required response secret_id sequence session_id severity'.split(' '),
	...'signature_valid similarity source_ip started_at status_code status_detail temperature timestamp'.split(' '),
	...'timezone token_id tool_calls transport updated_at waited_by waits_for warnings was_read'.split(' '),
	...'webhook_slug cached_tokens reasoning_tokens provider_state reasoning digest'.split(' '),
	// Values that control what happens next.
	...'applying assistant completed connected connecting disabled disconnected heartbeat javascript'.split(' '),
	...'planning quarantined reconnecting subagent typescript withdrawn'.split(' '),
]
