-- Only the flag of the cut-over sends a document the old way
--
-- The migration that defines document_monolith granted its status to users as that of any stage, who so could go round the
-- flag. Migrations that are written from now on grant none of a pipeline that another replaces.

revoke update (monolith_status) on public.document from authenticated;
