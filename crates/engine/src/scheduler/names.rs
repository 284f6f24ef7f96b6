//! How a client's name for a job leads to the job, as the idempotency rules of the wire want it.

use store::{Digest, JobId};

use super::Scheduler;
use super::event::Submission;
use super::job::Job;

/// Digits of a digest in a qualified name: the first try, and by how many it grows when taken.
const NAME_DIGITS: usize = 8;

impl Scheduler {
    /// Puts a job into the name tables.
    pub(super) fn index(&mut self, job: Job) {
        self.names.insert(job.name.clone(), job.id);
        if !job.request_id.is_empty() {
            self.identities
                .insert((job.request_id.clone(), job.digest), job.id);
            let newest = self.requests.entry(job.request_id.clone()).or_default();
            newest.insert((job.submitted, job.id));
        }
        self.jobs.insert(job.id, job);
    }

    pub(super) fn unindex(&mut self, id: JobId) {
        let Some(job) = self.jobs.remove(&id) else {
            return;
        };
        self.names.remove(&job.name);
        if let Some(newest) = self.requests.get_mut(&job.request_id) {
            newest.remove(&(job.submitted, id));
            if newest.is_empty() {
                self.requests.remove(&job.request_id);
            }
        }
        self.identities.remove(&(job.request_id, job.digest));
    }

    /// Notes that a job was submitted once more: it is the newest of its request id.
    pub(super) fn touch(&mut self, id: JobId) {
        let sequence = self.sequence();
        let job = self
            .jobs
            .get_mut(&id)
            .expect("invariant: callers name a known job");
        if let Some(newest) = self.requests.get_mut(&job.request_id) {
            newest.remove(&(job.submitted, id));
            newest.insert((sequence, id));
        }
        job.submitted = sequence;
    }

    /// The name of a new job: the request id itself for the first of it, the job's id where there
    /// is none, else the request id with the beginning of the digest.
    pub(super) fn free_name(&self, submission: &Submission) -> String {
        let id = &submission.request_id;
        if id.is_empty() {
            return submission.id.to_string();
        }
        let is_free = |name: &str| !self.names.contains_key(name) && self.lookup(name).is_none();
        if !self.requests.contains_key(id) && is_free(id) {
            return id.clone();
        }
        qualified_names(id, &submission.digest)
            .find(|name| is_free(name))
            .unwrap_or_else(|| submission.id.to_string())
    }

    /// A name that means this job and no other at present.
    pub(super) fn address(&self, id: JobId) -> String {
        let job = &self.jobs[&id];
        let alone = self
            .requests
            .get(&job.request_id)
            .is_none_or(|jobs| jobs.len() == 1);
        if alone || job.name != job.request_id {
            return job.name.clone();
        }
        qualified_names(&job.request_id, &job.digest)
            .find(|name| self.lookup(name) == Some(id))
            .unwrap_or_else(|| job.name.clone())
    }

    /// The job that a client means: by the name it was given, by its bare request id (then the
    /// one submitted last), or by request id and the beginning of the digest.
    pub fn lookup(&self, text: &str) -> Option<JobId> {
        if let Some(id) = self
            .names
            .get(text)
            .filter(|id| self.jobs[*id].request_id != text)
        {
            return Some(*id);
        }
        if let Some((_, id)) = self.requests.get(text).and_then(|jobs| jobs.last()) {
            return Some(*id);
        }
        let (request_id, digits) = text.rsplit_once('#')?;
        if digits.len() < NAME_DIGITS {
            return None;
        }
        let jobs = self.requests.get(request_id)?;
        let begins = |id: &JobId| self.jobs[id].digest.to_string().starts_with(digits);
        jobs.iter().rev().map(|&(_, id)| id).find(begins)
    }
}

/// `<request id>#<8, 16, … 64 digits of the digest>`.
fn qualified_names(request_id: &str, digest: &Digest) -> impl Iterator<Item = String> {
    let (request_id, digits) = (request_id.to_owned(), digest.to_string());
    (NAME_DIGITS..=digits.len())
        .step_by(NAME_DIGITS)
        .map(move |count| format!("{request_id}#{}", &digits[..count]))
}
